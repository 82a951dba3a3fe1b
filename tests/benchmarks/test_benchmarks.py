import json
import sys

import auxiliary_branch as branch
import cv2
import pytest
import torch
import train_step

TINY = '--no-compile --threads 1 --repeats 1 --decoders 15 --classes 3 --channels 4 --images 1'


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
    monkeypatch.setattr(branch, 'GROWTH', dict(decoders=(15, 30), stride=(2, 4)))
    options = [*TINY.split(), '--size', 3, 2, '--json', tmp_path / 'figures.json']
    run(branch, monkeypatch, *options)
    heading = 'The auxiliary branch: K=15, C=3, stride 8, z 1×4×3×2'
    assert heading in capsys.readouterr().out
    figures = json.loads((tmp_path / 'figures.json').read_text())
    assert list(figures['main']) == ['bank', 'plain']
    assert list(figures['scaling']) == ['decoders 15', 'decoders 30', 'stride 2', 'stride 4']


@pytest.mark.slow
def test_train_step_compares_cct_with_supervised(monkeypatch, project_root, tmp_path, capsys):
    config, figures = project_root / 'configs/demo/cct_shapes.py', tmp_path / 'figures.json'
    options = '--size 32 32 --repeats 1 --threads 1 --no-compile --variants merged'
    options = [*options.split(), 'channels_last+bfloat16', '--json', figures]
    run(train_step, monkeypatch, '--config', config, *options)
    assert 'cct_shapes, 2+2 images of 32×32' in capsys.readouterr().out
    methods = 'CCT', 'supervised', 'baseline'
    variants = [f'{m}, {v}' for v in ('merged', 'channels_last+bfloat16') for m in methods]
    steps = json.loads(figures.read_text())['steps']
    assert list(steps) == [*methods, *variants]
