import hashlib
import json
import subprocess
import sys

import auxiliary_branch as branch
import cv2
import numpy as np
import pytest
import release_weights
import spoil_masks
import torch
import train_step
import yaml
from PIL import Image

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


def test_masks_are_spoiled_to_the_wanted_miou_and_alike_by_the_same_seed(
    monkeypatch, tmp_path, capsys
):
    (tmp_path / 'masks').mkdir()
    for number in range(6):  # of four classes in regions, and some ignored pixels
        rng = np.random.default_rng(number)
        mask = rng.integers(0, 4, (4, 6)).astype(np.uint8).repeat(10, 0).repeat(10, 1)
        mask[:3, :5] = 255
        Image.fromarray(mask).save(tmp_path / f'masks/{number}.png')
    options, files = ['--num-classes', 4, '--miou', 60, '--out'], []
    for out in ('a', 'b'):
        run(spoil_masks, monkeypatch, tmp_path / 'masks', *options, tmp_path / out)
        files.append({path.name: path.read_bytes() for path in (tmp_path / out / '60').iterdir()})
    assert len(files[0]) == 6 and files[0] == files[1]
    lines = capsys.readouterr().out.splitlines()
    assert 50 < float(lines[0].partition('mIoU ')[2].partition(',')[0]) < 70
    assert lines[2].strip().startswith('kept, n=5 ')


def test_the_files_of_a_release_and_their_entry(trained, tmp_path, monkeypatch, capsys):
    # git may be missing; mmengine asks for the compiler's version, as bytes
    answer = lambda *_, text=False, **__: 'abc\n' if text else b'abc\n'  # noqa: E731
    monkeypatch.setattr(subprocess, 'check_output', answer)
    options = ['--config', 'configs/a.py', '--data-set', 'Mine', '--url', 'x://y', '--out']
    run(release_weights, monkeypatch, trained.work_dir, *options, tmp_path)
    printed = capsys.readouterr().out
    (entry,) = yaml.safe_load(printed[printed.index('- Name') :])
    weights, log = (entry[key].removeprefix('x://y/') for key in ('Weights', 'Training Log'))
    assert weights.startswith(entry['Name']) and entry['Code'] == {'Version': 'abc'}
    assert 0 < entry['Results'][0]['Metrics']['mIoU'] <= 100
    sums = [line.split() for line in (tmp_path / 'SHA256SUMS').read_text().splitlines()]
    assert {name for _, name in sums} == {weights, log}
    for value, name in sums:
        assert value == hashlib.sha256((tmp_path / name).read_bytes()).hexdigest()
    assert str(trained.folder) not in (tmp_path / log).read_text()
