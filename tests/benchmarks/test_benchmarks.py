"""The benchmarks at sizes that take a second, and the counts that their tables rest on."""

import json
import subprocess
import sys
from argparse import Namespace
from types import ModuleType

import _measure
import auxiliary_branch as branch
import pytest
import strong_views
import torch
import train_step
from _public_code import load_public_code
from torch.utils.flop_counter import FlopCounterMode

TINY = [
    '--no-compile', '--threads', '1', '--repeats', '1', '--decoders', '7', '--classes', '3',
    '--channels', '4', '--images', '1', '--size', '3', '2', '--map-sizes', '3x2',
    '--scale-decoders', '7', '14', '--scale-classes', '3', '--scale-images', '1', '2',
    '--scale-strides', '2', '4', '--width-classes', '3', '--widths', '8', '--places', '4x8', '8x4',
]  # fmt: skip


def run(module, monkeypatch, *arguments):
    monkeypatch.setattr(sys, 'argv', ['benchmark', *map(str, arguments)])
    module.main()


def test_auxiliary_branch_prints_its_tables_and_writes_its_figures(monkeypatch, tmp_path, capsys):
    memory = {'idle': 100, 'bank': 110, 'bank eager': 115, 'plain': 140}
    monkeypatch.setattr(branch, '_child_peak', lambda name, _: memory[name])
    for rate in ('matmul_rate', 'copy_bandwidth', 'exponential_rate'):  # seconds at their sizes
        monkeypatch.setattr(branch, rate, lambda *_: 1e9)
    # a chunk as large as the default budget would be padding, nearly all of it
    monkeypatch.setattr('mmseg_cct.models.layers.chunking.CPU_MEMORY_BUDGET', 2**14, raising=False)
    run(branch, monkeypatch, *TINY, '--json', tmp_path / 'figures.json')

    printed = capsys.readouterr().out
    for heading in (
        'The auxiliary branch: K=7, C=3, stride 8, z 1×4×3×2',
        'One decoder of each',
        'How the bank grows',
        'A share of the feature positions',
        'The width of the decoders',
        'Other features of the same images',
        'the floor is',
    ):
        assert heading in printed
    figures = json.loads((tmp_path / 'figures.json').read_text())
    bank, plain = (figures['main']['implementations'][name]['time'] for name in ('bank', 'plain'))
    assert figures['time_ratio'] == pytest.approx(plain['median'] / bank['median'])
    assert figures['memory_ratio'] == pytest.approx(10 / 40)
    assert {'3x2 main decoder', '3x2 vat', '3x2 feature_noise'} <= figures['perturbations'].keys()
    assert {'K=7', 'K=14', 'N=2', 'stride 4'} <= figures['scaling'].keys()
    assert list(figures['places']) == ['D=4, stride 8', 'D=8, stride 4']
    assert list(figures['widths']) == ['C=3, channels C', 'C=3, channels 8']


def test_a_child_process_tells_its_peak(monkeypatch, capsys):
    run(branch, monkeypatch, *TINY, '--child', 'plain')
    assert int(capsys.readouterr().out) > 2**20


def test_the_peak_of_a_process_is_not_its_parents(project_root):
    ballast = torch.ones(2**27)  # 512 MiB
    code = 'import _measure; print(_measure.process_peak())'
    done = subprocess.run(
        [sys.executable, '-c', code],
        cwd=project_root / 'benchmarks',
        capture_output=True,
        text=True,
        check=True,
    )
    alone = int(done.stdout)
    del ballast
    again = subprocess.run(
        [sys.executable, '-c', code],
        cwd=project_root / 'benchmarks',
        capture_output=True,
        text=True,
        check=True,
    )
    assert alone == pytest.approx(int(again.stdout), rel=0.1)


def test_bank_and_plain_compute_one_loss():
    options = Namespace(device='cpu', dtype='float32', reference=None, no_compile=True)
    case = branch.Case(2, 8, 6, 6, 3, 4, (('context_masking', 1), ('object_masking', 1)))
    measured = branch.Branch(case, options)  # perturbations without chance
    losses = [measured.make(name)() for name in ('bank', 'plain')]
    assert losses[0].item() == pytest.approx(losses[1].item(), rel=1e-5)


def test_train_step_compares_cct_with_supervised(monkeypatch, project_root, tmp_path, capsys):
    config = project_root / 'configs/cct/cct_mbv2_camvid_50.py'
    run(
        train_step,
        monkeypatch,
        '--config',
        config,
        '--size',
        32,
        32,
        '--repeats',
        1,
        '--threads',
        1,
        '--no-compile',
        '--json',
        tmp_path / 'figures.json',
    )
    assert 'cct_mbv2_camvid_50, 2+2 images of 32×32' in capsys.readouterr().out
    figures = json.loads((tmp_path / 'figures.json').read_text())
    steps = figures['steps']
    assert figures['step_ratio'] == pytest.approx(
        steps['CCT']['time']['median'] / steps['supervised']['time']['median']
    )


@pytest.mark.parametrize('num_decoders', [7, 30, 45, 120])
def test_the_mix_keeps_the_papers_shares(num_decoders):
    mix = dict(branch.paper_mix(num_decoders))
    assert sum(mix.values()) == num_decoders
    paper = dict(
        vat=2,
        dropout=6,
        guided_cutout=6,
        context_masking=2,
        object_masking=2,
        feature_drop=6,
        feature_noise=6,
    )
    assert all(abs(mix.get(name, 0) - n * num_decoders / 30) < 1 for name, n in paper.items())


@pytest.mark.parametrize('stride', [2, 8])
def test_hand_counted_flops_are_those_of_plain_decoders(stride):
    case = branch.Case(2, 8, 3, 4, 5, stride, (('dropout', 3),))
    options = Namespace(device='cpu', dtype='float32', reference=None, no_compile=True)
    step = branch.Branch(case, options).make('plain')
    with FlopCounterMode(display=False) as counter:
        step()
    count = branch.work(case)
    assert count['projections'] + count['sub-pixel convolutions'] == counter.get_total_flops()


def test_steps_take_turns():
    calls = []
    steps = dict(a=lambda: calls.append('a'), b=lambda: calls.append('b'))
    times = _measure.alternate(steps, repeats=2, device='cpu')
    assert calls == list('ab' + 'ab' + 'abab')
    assert times['a'].keys() == {'first', 'median', 'min', 'max', 'cpu'}


def test_peak_memory_of_a_step_is_what_it_allocates():
    peak = _measure.step_peak(lambda: torch.ones(2**24), 'cpu')  # 64 MiB
    if peak is None:
        pytest.skip('this system does not tell')
    assert peak == pytest.approx(2**26, rel=0.1)


def test_a_folder_that_is_no_clone_is_named(tmp_path):
    with pytest.raises(SystemExit, match=r'models/decoders\.py; expected a clone'):
        load_public_code(str(tmp_path))


def test_a_clone_with_mixed_tabs_is_loaded(monkeypatch, tmp_path):
    for name in (
        'utils',
        'utils.helpers',
        'utils.losses',
        'base',
        'base.base_model',
        'models',
        'models.decoders',
        'models.model',
    ):
        monkeypatch.setitem(sys.modules, name, ModuleType(name))
        monkeypatch.delitem(sys.modules, name)  # what is loaded goes again after the test
    files = {
        'utils/losses.py': 'def one():\n\tvalue = 1\n        return value\n',
        'base/base_model.py': 'class BaseModel: pass\n',
        'models/__init__.py': 'raise ImportError("tensorboard")\n',
        'models/decoders.py': 'from utils.helpers import initialize_weights\n',
        'models/model.py': 'from base import BaseModel\nfrom utils.losses import *\n',
    }
    for name, source in files.items():
        file = tmp_path / name
        file.parent.mkdir(exist_ok=True)
        file.write_text(source)
    with pytest.raises(TabError):
        compile(files['utils/losses.py'], 'losses.py', 'exec')
    public = load_public_code(str(tmp_path))
    assert public.losses.one() == public.model.one() == 1


def test_strong_views_prints_a_row_of_each_library(monkeypatch, capsys):
    monkeypatch.setattr(strong_views.torch, 'set_num_threads', lambda _: None)
    monkeypatch.setattr(strong_views.cv2, 'setNumThreads', lambda _: None)
    monkeypatch.setattr(strong_views, 'find_spec', lambda name: name == 'torchvision')
    run(strong_views, monkeypatch, '--sizes', '16x32', '--views', '1', '--repeats', '1')
    rows = [line for line in capsys.readouterr().out.splitlines() if line.startswith('|')]
    assert [row.split(' | ')[0] for row in rows[2:]] == [
        '| `StrongViews` (mmcv, OpenCV)',
        '| torchvision on PIL images, as in UniMatch',
        '| torchvision v2 on uint8 tensors',
    ]
    assert all(row.endswith(' ms |') for row in rows[2:])


def test_every_library_gives_a_packed_view():
    image = strong_views.picture(16, 32)
    for view in strong_views.candidates(image).values():
        assert view().shape == (3, 16, 32) and view().dtype == torch.uint8
