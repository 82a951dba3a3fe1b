import json
import sys
from argparse import Namespace

import auxiliary_branch as branch
import cv2
import pytest
import torch
import train_step

TINY = [
    '--no-compile', '--threads', '1', '--repeats', '1', '--decoders', '7', '--classes', '3',
    '--channels', '4', '--images', '1', '--size', '3', '2', '--map-sizes', '3x2',
    '--scale-decoders', '7', '14', '--scale-classes', '3', '--scale-images', '1', '2',
    '--scale-strides', '2', '4',
]  # fmt: skip


@pytest.fixture(autouse=True)
def at_once(monkeypatch):
    """Stops benchmarks from setting threads."""
    monkeypatch.setattr(torch, 'set_num_threads', lambda _: None)
    monkeypatch.setattr(cv2, 'setNumThreads', lambda _: None)


def run(module, monkeypatch, *arguments):
    monkeypatch.setattr(sys, 'argv', ['benchmark', *map(str, arguments)])
    module.main()


@pytest.mark.slow
def test_auxiliary_branch_prints_its_tables_and_writes_its_figures(monkeypatch, tmp_path, capsys):
    # a chunk as large as the default budget would be padding, nearly all of it
    monkeypatch.setattr('mmseg_cct.models.layers.chunking.CPU_MEMORY_BUDGET', 2**14, raising=False)
    run(branch, monkeypatch, *TINY, '--json', tmp_path / 'figures.json')

    heading = 'The auxiliary branch: K=7, C=3, stride 8, z 1×4×3×2'
    assert heading in capsys.readouterr().out
    figures = json.loads((tmp_path / 'figures.json').read_text())
    assert list(figures['main']) == ['bank', 'plain']
    assert {'3x2 main decoder', '3x2 vat', '3x2 feature_noise'} <= figures['perturbations'].keys()
    grown = {'K=7', 'K=14', 'N=2', 'stride 4', 'position_fraction 0.5'}
    assert grown <= figures['scaling'].keys()


def test_bank_and_plain_compute_one_loss():
    options = Namespace(device='cpu', dtype='float32', reference=None, no_compile=True)
    case = branch.Case(2, 8, 6, 6, 3, 4, (('context_masking', 1), ('object_masking', 1)))
    measured = branch.Branch(case, options)  # perturbations without chance
    losses = [measured.make(name)() for name in ('bank', 'plain')]
    assert losses[0].item() == pytest.approx(losses[1].item(), rel=1e-5)


@pytest.mark.slow
def test_train_step_compares_cct_with_supervised(monkeypatch, project_root, tmp_path, capsys):
    config, figures = project_root / 'configs/demo/cct_shapes.py', tmp_path / 'figures.json'
    options = '--size 32 32 --repeats 1 --threads 1 --no-compile --variants merged+fused'
    options = [*options.split(), 'channels_last+bfloat16', '--json', figures]
    run(train_step, monkeypatch, '--config', config, *options)
    assert 'cct_shapes, 2+2 images of 32×32' in capsys.readouterr().out
    methods = 'CCT', 'supervised', 'baseline'
    variants = [f'{m}, {v}' for v in ('merged+fused', 'channels_last+bfloat16') for m in methods]
    steps = json.loads(figures.read_text())['steps']
    assert list(steps) == [*methods, *variants]
