"""The report on finished runs, from hand-made logs and from two tiny trainings."""

import json

import numpy as np
import pytest
from mmengine.config import Config
from mmengine.runner import Runner

from mmseg_cct.analysis.report import (
    Evaluation,
    Run,
    evaluate,
    find_run,
    iou_table,
    plot_curves,
    plot_grid,
    read_scalars,
    write_report,
)
from mmseg_cct.errors import UserError

TINY = dict(
    train_cfg=dict(max_iters=2, val_interval=2),
    param_scheduler=dict(end=2),
    default_hooks=dict(logger=dict(interval=1)),
    visualizer=dict(vis_backends=[dict(type='LocalVisBackend')]),
    log_level='ERROR',
    val_dataloader=dict(dataset=dict(count=2)),
    test_dataloader=dict(dataset=dict(count=3)),
)


def write_log(work_dir, start, lines):
    folder = work_dir / start / 'vis_data'
    folder.mkdir(parents=True)
    (folder / 'scalars.json').write_text('\n'.join(map(json.dumps, lines)))


@pytest.fixture(scope='module')
def trained(tmp_path_factory, project_root):
    """Directories of a baseline and a CCT run of two iterations."""
    root = tmp_path_factory.mktemp('runs')
    for name in ('supervised', 'cct'):
        config = Config.fromfile(project_root / f'configs/demo/{name}_shapes.py')
        config.merge_from_dict(TINY)
        config.train_dataloader.batch_size = 2
        config.train_dataloader.dataset.labeled.count = 2
        if name == 'cct':
            config.train_dataloader.dataset.unlabeled.count = 3
        config.work_dir = str(root / name)
        config.experiment_name = f'report_{name}'
        Runner.from_cfg(config).train()
    return root


def test_iou_table_has_every_class_the_mean_and_the_difference():
    iou = dict(a=np.array([0.5, 0.25]), b=np.array([0.625, 0.125]))
    assert iou_table(iou, ['x', 'y']).splitlines() == [
        '| class | a | b | difference |',
        '| --- | ---: | ---: | ---: |',
        '| x | 50.0 | 62.5 | +12.5 |',
        '| y | 25.0 | 12.5 | -12.5 |',
        '| **mean** | 37.5 | 37.5 | +0.0 |',
    ]


def test_iou_table_leaves_absent_classes_out_of_the_mean():
    table = iou_table(dict(only=np.array([0.5, np.nan])), ['x', 'y'])
    assert table.splitlines()[2:] == ['| x | 50.0 |', '| y | nan |', '| **mean** | 50.0 |']


def test_scalars_of_a_resumed_run_replace_what_it_repeats(tmp_path):
    write_log(tmp_path, '20260101_000000', [dict(step=1, lr=1), dict(step=2, lr=1)])
    write_log(tmp_path, '20260102_000000', [dict(step=2, lr=9), dict(step=2, mIoU=5.0)])
    assert read_scalars(tmp_path) == [
        dict(step=1, lr=1), dict(step=2, lr=9), dict(step=2, mIoU=5.0)
    ]  # fmt: skip


@pytest.mark.parametrize(
    'ramp', ['auxiliary_head.loss_consistency.loss_weight', 'loss_consistency.loss_weight']
)  # CCT; Mean Teacher, VAT
def test_curves_show_each_value_in_its_panel(ramp):
    logs = [{'step': step, 'decode.loss_ce': 3 - step, ramp: 10 * step} for step in (1, 2)]
    runs = [
        Run('sup', Config(), '', [dict(step=1, mIoU=4.0)]),
        Run('cct', Config(), '', logs),
    ]
    panels = {axes.get_title(): axes for axes in plot_curves(runs).axes}
    (line,) = panels['supervised loss L_s'].lines
    assert line.get_xydata().tolist() == [[1, 2], [2, 1]]
    (line,) = panels['ramps'].lines
    assert line.get_xydata().tolist() == [[1, 10], [2, 20]]
    assert [line.get_label() for line in panels['mIoU on val, %'].lines] == ['sup']
    assert not panels['consistency loss L_u'].lines


def test_grid_paints_class_ids_in_the_palette():
    image, ids = np.zeros((2, 2, 3), np.uint8), np.array([[0, 1], [1, 255]])
    evaluation = Evaluation(np.ones(2), [image] * 3, [ids] * 3, [1 - ids % 2] * 3)
    figure = plot_grid({'run': evaluation}, ['x', 'y'], [[1, 2, 3], [4, 5, 6]])
    pictures = [axes.get_images()[0].get_array() for axes in figure.axes]
    assert len(pictures) == 9  # image, truth and prediction of three images
    assert pictures[3].tolist() == [[[1, 2, 3], [4, 5, 6]], [[4, 5, 6], [255, 255, 255]]]


def test_report_of_two_trainings(trained, tmp_path):
    work_dirs = dict(supervised=trained / 'supervised', CCT=trained / 'cct')
    report = write_report(work_dirs, tmp_path / 'out', num_pictures=2)
    text = report.read_text()
    assert '| labelled images | 2 | 2 |' in text
    assert '| unlabelled images | 0 | 3 |' in text
    assert '| iterations | 2 | 2 |' in text
    assert '| seed | 0 | 0 |' in text
    assert 'test set of 3 images' in text and 'first 2 test images' in text
    assert text.count('\n| ') >= 5 + 9  # settings; header, rule, classes and mean
    for picture in ('curves.png', 'pictures.png'):
        assert (report.parent / picture).read_bytes().startswith(b'\x89PNG')


def test_evaluation_agrees_with_the_runners_own(trained):
    run = find_run('CCT', trained / 'cct')
    config = run.config.copy()
    config.work_dir, config.load_from = str(trained / 'test'), run.checkpoint
    config.experiment_name = 'report_test'
    expected = Runner.from_cfg(config).test()['mIoU']
    evaluation = evaluate(run, num_pictures=1)
    assert np.nanmean(evaluation.iou) * 100 == pytest.approx(expected, abs=0.01)
    assert len(evaluation.images) == len(evaluation.truths) == len(evaluation.predictions) == 1


def test_incomplete_runs_are_named(tmp_path, trained):
    with pytest.raises(UserError, match='no config in it; expected the work directory'):
        write_report(dict(a=tmp_path), tmp_path / 'out')
    (tmp_path / 'config.py').write_text('')
    with pytest.raises(UserError, match='no last_checkpoint; expected'):
        write_report(dict(a=tmp_path), tmp_path / 'out')
    with pytest.raises(UserError, match='no run; expected at least one'):
        write_report({}, tmp_path / 'out')


def test_runs_with_different_test_sets_are_refused(trained, tmp_path):
    other = tmp_path / 'other'
    other.mkdir()
    config = find_run('CCT', trained / 'cct').config
    config.test_dataloader.dataset.start = 7
    config.dump(other / 'config.py')
    (other / 'last_checkpoint').write_text((trained / 'cct/last_checkpoint').read_text())
    with pytest.raises(UserError, match='b: another test set than a'):
        write_report(dict(a=trained / 'cct', b=other), tmp_path / 'out')
