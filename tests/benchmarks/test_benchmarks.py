"""The benchmarks at sizes that take a second, and the counts that their tables rest on."""

import inspect
import json
import subprocess
import sys
from argparse import Namespace
from dataclasses import asdict
from types import ModuleType

import _measure
import auxiliary_branch as branch
import cv2
import data_loading
import predict
import pytest
import strong_views
import torch
import train_step
from _public_code import load_public_code
from torch.utils.flop_counter import FlopCounterMode

busy_seconds = _measure._busy_seconds

TINY = [
    '--no-compile', '--threads', '1', '--repeats', '1', '--decoders', '7', '--classes', '3',
    '--channels', '4', '--images', '1', '--size', '3', '2', '--map-sizes', '3x2',
    '--scale-decoders', '7', '14', '--scale-classes', '3', '--scale-images', '1', '2',
    '--scale-strides', '2', '4', '--width-classes', '3', '--widths', '8', '--places', '4x8', '8x4',
]  # fmt: skip


@pytest.fixture(autouse=True)
def at_once(monkeypatch):
    """Stops benchmarks from watching the machine for a second, and from setting threads."""
    monkeypatch.setattr(torch, 'set_num_threads', lambda _: None)
    monkeypatch.setattr(cv2, 'setNumThreads', lambda _: None)
    monkeypatch.setattr(_measure, '_busy_seconds', lambda _: None)
    monkeypatch.setattr(_measure.time, 'sleep', lambda _: None)
    monkeypatch.setattr(_measure, '_watch', _measure.Watch(threads=1, allow_busy=False))


def run(module, monkeypatch, *arguments):
    monkeypatch.setattr(sys, 'argv', ['benchmark', *map(str, arguments)])
    module.main()


def test_auxiliary_branch_prints_its_tables_and_writes_its_figures(monkeypatch, tmp_path, capsys):
    memory = {'idle': 100, 'bank': 110, 'bank eager': 115, 'plain': 140}
    monkeypatch.setattr(branch, '_child_peak', lambda name, _: memory[name])
    for rate in ('matmul_rate', 'copy_bandwidth', 'exponential_rate'):  # seconds at their sizes
        monkeypatch.setattr(branch, rate, lambda *_, **__: 1e9)
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
    assert figures['time_ratio'] == pytest.approx(plain['times'][0] / bank['times'][0])
    assert figures['memory_ratio'] == pytest.approx(10 / 40)
    assert {'3x2 main decoder', '3x2 vat', '3x2 feature_noise'} <= figures['perturbations'].keys()
    assert {'K=7', 'K=14', 'N=2', 'stride 4'} <= figures['scaling'].keys()
    assert list(figures['places']) == ['D=4, stride 8', 'D=8, stride 4']
    assert list(figures['widths']) == ['C=3, channels C', 'C=3, channels 8']


def test_a_child_process_tells_its_peak(monkeypatch, capsys):
    case = branch.Case(1, 4, 3, 2, 3, 4, (('vat', 1),), hidden=8)
    monkeypatch.setattr(branch, 'child', lambda name, found, _: print(name, found == case))
    run(branch, monkeypatch, *TINY, '--child', 'plain', json.dumps(asdict(case)))
    assert capsys.readouterr().out == 'plain True\n'
    monkeypatch.undo()
    branch.child(
        'plain', case, Namespace(device='cpu', dtype='float32', threads=1, no_compile=True)
    )
    assert int(capsys.readouterr().out) > 2**20


def test_the_peak_of_a_process_is_not_its_parents():
    ballast = bytearray(b'1') * 2**28
    bare = 'import platform, resource\nfrom pathlib import Path\n'  # importing torch takes longer
    code = map(inspect.getsource, (_measure.resident, _measure.process_peak))
    done = subprocess.run(
        [sys.executable, '-c', bare + '\n'.join(code) + 'print(process_peak())'],
        capture_output=True,
        text=True,
        check=True,
    )
    assert _measure.process_peak() > len(ballast) > int(done.stdout)


def test_bank_and_plain_compute_one_loss():
    options = Namespace(device='cpu', dtype='float32', reference=None, no_compile=True)
    case = branch.Case(2, 8, 6, 6, 3, 4, (('context_masking', 1), ('object_masking', 1)))
    measured = branch.Branch(case, options)  # perturbations without chance
    losses = [measured.make(name)() for name in ('bank', 'plain')]
    assert losses[0].item() == pytest.approx(losses[1].item(), rel=1e-5)


@pytest.mark.parametrize('loss', [0.5001, float('nan')])
def test_a_bank_that_computes_something_else_is_refused(loss):
    losses = {'bank': 0.50001, 'bank torch.compile': loss, 'bank eager': 0.5, 'plain': 0.7}
    message = r'^error: bank torch.compile: a loss of .*, but 0.5 uncompiled; expected the same'
    with pytest.raises(SystemExit, match=message):
        branch.require_equal_losses(losses, 'float32')
    losses['bank torch.compile'] = 0.50001
    branch.require_equal_losses(losses, 'float32')
    branch.require_equal_losses({'bank': 0.4, 'plain': 0.7}, 'float32')  # nothing is compiled


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
        '--variants',
        'merged+fused',
        'channels_last+bfloat16',
        '--json',
        tmp_path / 'figures.json',
    )
    assert 'cct_mbv2_camvid_50, 2+2 images of 32×32' in capsys.readouterr().out
    figures = json.loads((tmp_path / 'figures.json').read_text())
    steps = figures['steps']
    assert figures['step_ratio'] == pytest.approx(
        steps['CCT']['time']['median'] / steps['supervised']['time']['median']
    )
    assert figures['step_over_baseline'] == pytest.approx(
        steps['CCT']['time']['median'] / steps['baseline']['time']['median']
    )
    assert list(steps)[3:] == [
        'CCT, merged+fused',
        'supervised, merged+fused',
        'CCT, channels_last+bfloat16',
        'supervised, channels_last+bfloat16',
    ]


def test_an_unknown_variant_is_named(monkeypatch, capsys):
    with pytest.raises(SystemExit):
        run(train_step, monkeypatch, '--variants', 'fused+faster')
    assert 'fused+faster: no faster; expected merged, fused' in capsys.readouterr().err


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
    assert times['a'].keys() == {'first', 'times', 'cpu_times', 'median', 'min', 'max', 'cpu'}


def test_slow_steps_take_three_turns_and_no_more():
    calls = []
    _measure.alternate(dict(a=lambda: calls.append('a')), 9, 'cpu', warm_up=0, limit=0.0)
    assert calls == ['a'] * (1 + 3)


def test_ratios_are_those_of_the_turns():
    # of the medians: 2 / 2; of the turns: 1/4, 2/2, 9/1
    slow, fast = dict(times=[1.0, 2.0, 9.0]), dict(times=[4.0, 2.0, 1.0])
    assert _measure.quartiles(slow, fast) == (0.625, 1.0, 5.0)
    assert _measure.paired_ratio(slow, fast) == '1× (0.625–5)'
    assert _measure.paired_ratio(slow, slow) == '1×'


class Machine:
    """Clocks of a machine whose cores others keep busy."""

    def __init__(self, monkeypatch, cores, others):
        self.wall, self.cores, self.others = 100.0, cores, others
        monkeypatch.setattr(_measure, '_own_cores', lambda: frozenset(range(cores)))
        monkeypatch.setattr(_measure, '_busy_seconds', lambda _: 5.0 + self.others * self.wall)
        monkeypatch.setattr(_measure.time, 'perf_counter', lambda: self.wall)
        monkeypatch.setattr(_measure.time, 'process_time', lambda: 3.0)
        monkeypatch.setattr(_measure.time, 'sleep', self.sleep)

    def sleep(self, seconds):
        self.wall += seconds


@pytest.mark.parametrize('others, threads', [(0.1, 4), (2.0, 2), (3.0, 1)])
def test_load_that_fits_beside_the_threads_is_no_matter(monkeypatch, others, threads):
    Machine(monkeypatch, 4, others)
    _measure.require_quiet(threads, allow_busy=False)
    assert not _measure.watch().noisy


@pytest.mark.parametrize('others, threads', [(0.5, 4), (2.5, 2), (3.9, 1)])
def test_a_figure_on_a_busy_machine_is_refused(monkeypatch, others, threads):
    Machine(monkeypatch, 4, others)
    with pytest.raises(SystemExit, match=f'keep {others} of the 4 cores busy') as refused:
        _measure.require_quiet(threads, allow_busy=False)
    assert '\n' not in str(refused.value)


def test_more_threads_than_cores_are_refused(monkeypatch):
    Machine(monkeypatch, 1, 0.0)
    with pytest.raises(SystemExit, match='--threads 2: this process may use 1 cores'):
        _measure.require_quiet(2, allow_busy=False)


def test_figures_of_a_busy_machine_are_marked_where_they_are_allowed(monkeypatch, capsys):
    Machine(monkeypatch, 4, 4.0)
    _measure.require_quiet(1, allow_busy=True)
    assert 'every figure is marked' in capsys.readouterr().out
    assert _measure.seconds(0.5) == '~500 ms'
    assert _measure.paired_ratio(dict(times=[2.0]), dict(times=[1.0])) == '~2× (2–2)'


def test_turns_that_others_disturb_are_taken_again(monkeypatch):
    machine = Machine(monkeypatch, 1, 0.0)
    _measure.require_quiet(1, allow_busy=False)
    turns = []

    def step():
        machine.wall += 1.0
        turns.append(len(turns))
        monkeypatch.setattr(
            _measure, '_busy_seconds', lambda _: 200.0 if len(turns) == 3 else 100.0
        )

    times = _measure.alternate(dict(a=step), repeats=4, device='cpu', warm_up=0)
    # the first call; then the turn that ends in the disturbance, the one that begins in it, four
    assert len(times['a']['times']) == 4
    assert len(turns) == 6


def test_a_machine_that_stays_busy_ends_the_measurement(monkeypatch):
    machine = Machine(monkeypatch, 1, 0.0)
    _measure.require_quiet(1, allow_busy=False)
    machine.others = 1.0
    with pytest.raises(SystemExit, match='disturbed 4 turns; expected a quiet machine'):
        _measure.alternate(dict(a=lambda: machine.sleep(1.0)), 3, 'cpu')


def test_the_cores_that_a_process_may_use_are_those_of_the_system():
    if not _measure.Path('/proc/stat').exists():
        pytest.skip('this system does not tell')
    cores = _measure._own_cores()
    alone = busy_seconds(frozenset([min(cores)]))
    assert 0 < alone <= busy_seconds(cores)


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
    monkeypatch.setattr(strong_views, 'find_spec', lambda name: name == 'torchvision')
    run(strong_views, monkeypatch, '--sizes', '48x64', '--views', '1', '--repeats', '1')
    rows = [line for line in capsys.readouterr().out.splitlines() if line.startswith('|')]
    assert [row.split(' | ')[0] for row in rows[-3:]] == [
        '| `StrongViews` (mmcv, OpenCV)',
        '| torchvision on PIL images, as in UniMatch',
        '| torchvision v2 on uint8 tensors',
    ]
    assert all(row.endswith(' ms |') for row in rows[-3:])


def test_every_library_gives_a_packed_view():
    image = strong_views.picture(48, 64, seed=0)
    for view in strong_views.candidates(image).values():
        assert view().shape == (3, 48, 64) and view().dtype == torch.uint8


def test_data_loading_tells_where_the_time_goes(monkeypatch, tmp_path, capsys):
    monkeypatch.setattr(data_loading, 'PICTURES', 1)
    arguments = ['--batch-size', 1, '--repeats', 1, '--json', tmp_path / 'figures.json']
    run(data_loading, monkeypatch, '--pipelines', 'idd_lite', 'shapes', *arguments)
    assert '| idd_lite | 227×320 .jpg |' in capsys.readouterr().out
    figures = json.loads((tmp_path / 'figures.json').read_text())['pipelines']
    spent = figures['idd_lite']['spent']
    assert {'LoadImageFromFile', 'LoadAnnotations', 'PackSegInputs', 'rest'} <= spent.keys()
    assert figures['idd_lite']['image'] == pytest.approx(figures['idd_lite']['pair'] / 2)
    assert 'DrawShapesScene' in figures['shapes']['spent']


def test_data_loading_takes_real_images(monkeypatch, tmp_path, capsys):
    few = ['--pipelines', 'camvid', '--batch-size', 1, '--repeats', 1]
    with pytest.raises(SystemExit, match=r'no \.jpg or \.png in it'):
        run(data_loading, monkeypatch, *few, '--images', f'camvid={tmp_path}')
    cv2.imwrite(str(tmp_path / 'a.jpg'), data_loading.picture(40, 60, 0))
    run(data_loading, monkeypatch, *few, '--images', f'camvid={tmp_path}')
    assert '| camvid |' in capsys.readouterr().out
    with pytest.raises(SystemExit):
        run(data_loading, monkeypatch, *few, '--images', 'no_such=.')
    assert 'no_such: expected PIPELINE=DIR' in capsys.readouterr().err


def test_predict_compares_with_the_inferencer_of_mmsegmentation(
    tiny_cct, monkeypatch, tmp_path, capsys
):
    arguments = tiny_cct.config, tiny_cct.checkpoint, tiny_cct.images, '--images', 2
    run(predict, monkeypatch, *arguments, '--repeats', 1, '--json', tmp_path / 'figures.json')
    rows = [line for line in capsys.readouterr().out.splitlines() if line.startswith('| ')]
    assert any(row.startswith('| MMSegInferencer |') for row in rows)
    assert set(json.loads((tmp_path / 'figures.json').read_text())['times']) == {
        'predict',
        'MMSegInferencer',
    }
