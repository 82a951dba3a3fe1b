import shutil

import cv2
import numpy as np
import pytest
import torch
import world
from mmengine.config import Config
from mmengine.runner import Runner

from mmseg_cct.apis.finished_runs import evaluate, predict_images
from mmseg_cct.apis.report.report import _seconds_per_iteration, _validation_notes, write_report
from mmseg_cct.apis.run import Run
from mmseg_cct.engine.safe_loading import load_data
from mmseg_cct.errors import UserError


def test_evaluation_agrees_with_the_runners_own(compared):
    run = Run.open(compared / 'cct', name='CCT')
    config = run.config.copy()
    config.work_dir, config.load_from = str(compared / 'test'), run.checkpoint
    config.experiment_name = 'report_test'
    expected = Runner.from_cfg(config).test()['mIoU']
    evaluation = evaluate(run)
    assert np.nanmean(evaluation.iou) * 100 == pytest.approx(expected, abs=0.01)


def test_the_iou_of_an_image_is_that_of_its_picture(compared):
    run = Run.open(compared / 'cct', name='CCT')
    run.config.test_dataloader.update(  # whatever order it was tested in
        sampler=dict(type='InfiniteSampler', shuffle=True), drop_last=True, num_workers=10**9
    )
    evaluation = evaluate(run)
    assert len(evaluation.image_miou) == 3
    for index, picture in zip((2, 0), predict_images(run, (2, 0))):
        by_class = [
            ((picture.truth == c) & (picture.prediction == c)).sum()
            / ((picture.truth == c) | (picture.prediction == c)).sum()
            for c in np.unique(picture.truth)
        ]
        assert evaluation.image_miou[index] == pytest.approx(np.mean(by_class))


@pytest.mark.parametrize('run', ['x, n = 20=empty', 'x=lr=0.1'])
def test_names_and_folders_may_hold_an_equals_sign(run, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    for folder in ('empty', 'lr=0.1'):
        (tmp_path / folder).mkdir()
    with pytest.raises(SystemExit):
        world.run_tool('report', run, '--out', 'out')
    folder = 'empty' if 'n = 20' in run else 'lr=0.1'
    assert capsys.readouterr().err.startswith(f'error: {folder}: holds no config')


def test_incomplete_runs_are_named(tmp_path):
    with pytest.raises(UserError, match='holds no config'):
        write_report(dict(a=tmp_path), tmp_path / 'out')
    with pytest.raises(UserError, match='no run; expected at least one'):
        write_report({}, tmp_path / 'out')
    with pytest.raises(UserError, match=r"run 'a\\n# b': more than one line; expected a name on o"):
        write_report({'a\n# b': tmp_path}, tmp_path / 'out')


def test_classes_in_another_order_than_the_checkpoints_are_refused(compared, tmp_path):
    shutil.copytree(compared / 'cct', tmp_path / 'run')
    content = load_data(str(tmp_path / 'run/iter_2.pth'), 'iter_2.pth')
    content['meta']['dataset_meta']['classes'] = content['meta']['dataset_meta']['classes'][::-1]
    torch.save(content, tmp_path / 'run/iter_2.pth')
    with pytest.raises(UserError, match=r'iter_2\.pth: class 0 is ring, in the data set backgr'):
        write_report(dict(a=tmp_path / 'run'), tmp_path / 'out')


@pytest.mark.parametrize(
    ('mask', 'message'),
    [(200, r'.*v0\.png .*: label id 200'), (255, 'no pixel with a class'), (None, 'has no masks')],
)
def test_a_test_set_that_gives_no_iou_is_named(compared, tmp_path, mask, message):
    run, load = Run.open(compared / 'cct', name='CCT'), [world.LOAD_IMAGE]
    world.write_images(tmp_path, num_labeled=0)
    if mask is not None:
        load.append(world.LOAD_MASK)
        for path in tmp_path.glob('val_masks/*.png'):
            cv2.imwrite(str(path), np.full((32, 40), mask, np.uint8))
    run.config.test_dataloader.dataset = world.folder_set(
        tmp_path, 'labeled', [*load, dict(type='PackSegInputs')], 'val_'
    )
    with pytest.raises(UserError, match=rf'CCT: test_dataloader\.dataset: {message}'):
        evaluate(run)


def test_the_time_of_an_iteration_is_the_median_of_those_that_train():
    logs = [dict(step=step, lr=1, time=time) for step, time in enumerate((9.0, 0.2, 0.3, 0.1), 1)]
    logs.append(dict(step=4, mIoU=5.0, time=50.0))  # of a validation
    run = Run(Config(), '', 'a')
    run.scalars = logs
    assert _seconds_per_iteration(run) == '0.25'


def test_a_validation_set_of_its_own_is_no_test_set(compared):
    run = Run.open(compared / 'cct', name='CCT')
    (line,) = _validation_notes(run, ['car'])
    run.scalars = [{'IoU.car': 50.0}]
    first, _ = _validation_notes(run, ['car', 'rust'])
    assert 'rust' in first
    assert line.startswith('only 2 validation images')
