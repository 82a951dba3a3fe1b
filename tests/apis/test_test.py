import json
from pathlib import Path

import numpy as np
import pytest
import torch.distributed as dist
from PIL import Image
from ranks import outcomes, start_tool, without_cuda

from mmseg_cct.apis.prepare import Request
from mmseg_cct.apis.run import Run
from mmseg_cct.apis.test import prepare_test
from mmseg_cct.errors import UserError


def _metrics(work_dir):
    (path,) = work_dir.glob('*/[0-9]*.json')
    return json.loads(path.read_text())


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_metrics_and_predictions_are_written(trained, here):
    trained.run('test', trained.file, trained.checkpoint, '--work-dir', 'w', '--out', 'png')
    assert 0 <= _metrics(here / 'w')['mIoU'] <= 100
    predicted = np.array(Image.open(here / 'png' / 'v0.png'))
    assert predicted.shape == (32, 40) and predicted.max() < 3


def test_tta_leaves_the_trainings_config_alone(trained, here):
    dumped = (trained.work_dir / 'tiny.py').read_text()
    trained.run('test', trained.file, trained.checkpoint, '--work-dir', trained.work_dir, '--tta')
    assert (trained.work_dir / 'tiny.py').read_text() == dumped
    assert 'SegTTAModel' in (trained.work_dir / 'test' / 'tiny.py').read_text()
    assert 0 <= _metrics(trained.work_dir / 'test')['mIoU'] <= 100


def test_the_trainings_own_work_dir_is_never_used(trained, tmp_path):
    files = trained.file, trained.checkpoint
    assert prepare_test(Run.open(*files)).work_dir == 'work_dirs/tiny/test'
    assert prepare_test(Run.open(trained.work_dir)).work_dir == str(trained.work_dir / 'test')
    (tmp_path / 'last_checkpoint').touch()
    run = Run.open(*files)
    assert prepare_test(run, Request(work_dir=str(tmp_path))).work_dir == str(tmp_path / 'test')


@pytest.mark.parametrize(
    ('settings', 'request_'),
    [
        (dict(test_evaluator=dict(type='DumpResults', out_file_path='a.pkl')), Request(out='png')),
        (dict(test_dataloader=None), Request()),
        (dict(tta_model=None), Request(tta=True)),
    ],
)
def test_a_config_that_lacks_something_is_named(cct, trained, settings, request_):
    for key, value in settings.items():
        setattr(cct.config, key, value)
    with pytest.raises(UserError) as error:
        prepare_test(Run.open(cct.write(), trained.checkpoint), request_)
    assert error.value.problems[0].key == str(cct.file)


@without_cuda
def test_two_gloo_processes_give_one_process_metrics_and_leave_no_thread(
    trained, here, monkeypatch
):
    command, leave = ('test', trained.file, trained.checkpoint), dist.destroy_process_group

    def leave_and_look():
        leave()
        print('left:', {file.read_text() for file in Path('/proc/self/task').glob('*/comm')})

    monkeypatch.setattr(dist, 'destroy_process_group', leave_and_look)
    trained.run(*command, '--work-dir', here / 'one')
    for code, out, err in outcomes(start_tool(here, *command, '--work-dir', here / 'two')):
        assert code == 0, err[-3000:]
        # a thread of the group could let go of a tensor while the interpreter ends, which aborts
        assert 'left:' in out and 'gloo' not in out.partition('left:')[2]
    one, two = _metrics(here / 'one'), _metrics(here / 'two')
    assert one['mIoU'] == pytest.approx(two['mIoU'])
