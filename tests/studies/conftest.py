"""Fake train.py and test.py that take a moment, and runs of them."""

import pytest
from mmengine.config import Config

from mmseg_cct.studies.execution import StudyRun

TRAIN = """
import os, runpy, signal, sys, time
from pathlib import Path

config, flag, work_dir, *resume = sys.argv[1:]
assert flag == '--work-dir' and bool(resume) == Path(work_dir).is_dir()
settings, work_dir = runpy.run_path(config), Path(work_dir)
if settings.get('deaf'):
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
work_dir.mkdir(exist_ok=True)
(work_dir / 'pid').write_text(str(os.getpid()))
start = time.time()
latest = work_dir / 'last_checkpoint'
first = int(Path(latest.read_text()).stem[5:]) if latest.is_file() else 0
for iteration in range(first + 1, settings['train_cfg']['max_iters'] + 1):
    if settings.get('stall_before') == iteration and 'STALL' in os.environ:
        time.sleep(60)
    if settings.get('fail_before') == iteration:
        raise ValueError('the data is bad')
    with (work_dir / 'iterations').open('a') as file:
        file.write(f'{iteration} ')
    (work_dir / f'iter_{iteration}.pth').touch()
    latest.write_text(f'{work_dir}/iter_{iteration}.pth')
while 'beside' in settings and len([*Path(settings['beside']).rglob('pid')]) < 2:
    time.sleep(0.01)  # until another one has started, too
where = os.environ.get('CUDA_VISIBLE_DEVICES', '')
(work_dir / 'where').write_text(f'{where} {start} {time.time()}')
"""
TEST = """
import json, runpy, sys
from pathlib import Path

config, checkpoint, flag, work_dir = sys.argv[1:]
assert flag == '--work-dir' and Path(checkpoint).is_file()
folder = Path(work_dir, '20260101_000000')
folder.mkdir(parents=True)
miou = runpy.run_path(config).get('miou', 50.0)
(folder / 'metrics.json').write_text(json.dumps(dict(aAcc=80.0, mIoU=miou)))
"""


@pytest.fixture
def fake_tools(tmp_path):
    folder = tmp_path / 'tools'
    folder.mkdir()
    (folder / 'train.py').write_text(TRAIN)
    (folder / 'test.py').write_text(TEST)
    return folder


@pytest.fixture
def make_run(tmp_path):
    """Makes a run of three iterations of a method."""

    def make(method, **settings):
        run = StudyRun(tmp_path / 'out', method, 'config', 0, 3)
        run.folder.mkdir(parents=True)
        Config(dict(train_cfg=dict(max_iters=3), **settings)).dump(run.config)
        return run

    return make


@pytest.fixture
def put_result():
    """Writes what a finished run leaves."""

    def put(out, method, labels, seed, miou):
        folder = out / method / str(labels) / f'seed{seed}' / 'test' / '20260101_000000'
        folder.mkdir(parents=True)
        (folder / '20260101_000000.json').write_text(f'{{"aAcc": 80.0, "mIoU": {miou}}}')

    return put


@pytest.fixture
def out(tmp_path, put_result):
    found = {'supervised': (30.0, 31.0, 35.0), 'full_k2': (40.0, 42.0)}
    found |= {'vat_k10': (39.0,), 'vat_k2': (38.0,)}
    for method in found:
        for seed, miou in enumerate(found[method]):
            put_result(tmp_path, method, 20, seed, miou)
    put_result(tmp_path, 'vat_k2', 100, 0, 48.06)
    put_result(tmp_path, 'kl', 100, 0, 50.0)
    (tmp_path / 'kl' / '20' / 'seed0' / 'train').mkdir(parents=True)  # not finished
    return tmp_path
