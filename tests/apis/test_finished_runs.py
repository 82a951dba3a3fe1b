import dataclasses
import json
import shutil

import cv2
import numpy as np
import pytest
import torch
import world
from mmengine.config import Config
from mmengine.runner import Runner

from mmseg_cct.apis.finished_runs import Run, evaluate, find_run, predict_images, read_scalars
from mmseg_cct.apis.report.report import _seconds_per_iteration, _validation_notes, write_report
from mmseg_cct.engine.safe_loading import load_data
from mmseg_cct.errors import UserError


def write_log(work_dir, start, *lines):
    folder = work_dir / start / 'vis_data'
    folder.mkdir(parents=True)
    lines = [line if isinstance(line, str) else json.dumps(line) for line in lines]
    (folder / 'scalars.json').write_text('\n'.join(lines))


def test_scalars_of_a_resumed_run_replace_what_it_repeats_and_a_line_that_a_kill_cut(tmp_path):
    lines = dict(step=1, lr=1), dict(step=2, lr=9), dict(step=2, mIoU=5.0)
    write_log(tmp_path, '20260101_000000', lines[0], dict(step=2, lr=1), '{"step": 2, "l')
    write_log(tmp_path, '20260102_000000', *lines[1:])
    assert read_scalars(tmp_path) == [*lines]


@pytest.mark.parametrize(
    'line',
    [
        *('{"step": 2, "l', '3', '\ufffd', '{"step": "a"}', '{"lr": [1]}', '[' * 10**5),
        f'{{"step": 1{"0" * 400}}}',
    ],
)
def test_a_damaged_line_of_a_log_is_named(tmp_path, line):
    write_log(tmp_path, '20260101_000000', line, dict(step=1, lr=1))
    with pytest.raises(UserError, match=r'scalars\.json, line 1: .*; expected a JSON object'):
        read_scalars(tmp_path)


def test_evaluation_agrees_with_the_runners_own(compared):
    run = find_run('CCT', compared / 'cct')
    config = run.config.copy()
    config.work_dir, config.load_from = str(compared / 'test'), run.checkpoint
    config.experiment_name = 'report_test'
    expected = Runner.from_cfg(config).test()['mIoU']
    evaluation = evaluate(run)
    assert np.nanmean(evaluation.iou) * 100 == pytest.approx(expected, abs=0.01)


def test_the_iou_of_an_image_is_that_of_its_picture(compared):
    run = find_run('CCT', compared / 'cct')
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
    assert capsys.readouterr().err.startswith(f'error: {folder}: no checkpoint in it; expected')


def test_incomplete_runs_are_named(tmp_path):
    with pytest.raises(UserError, match='no checkpoint in it; expected the work directory'):
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


def test_a_copied_run_is_evaluated_by_its_own_checkpoint(changed):
    """`last_checkpoint` still names the original; a config in the folder may be broken by now."""
    copy = changed(lambda config: config.update(randomness=dict(seed=7)))
    (copy / 'broken.py').write_text('model = dict(')
    run = find_run('copy', copy)
    assert run.checkpoint == str(copy / 'iter_2.pth')
    assert run.config.randomness.seed == 7


def no_such_module(config):
    config.custom_imports.imports = ['no_such_module']
    config.dump('dumped.py')


@pytest.mark.parametrize(
    ('edit', 'message'),
    [
        (lambda config: config.pop('test_dataloader'), 'its config has no test_dataloader; expect'),
        (no_such_module, 'custom_imports: ImportError: .*no_such_module; expected modules'),
    ],
)
def test_a_config_that_does_not_do_is_one_line(changed, tmp_path, monkeypatch, edit, message):
    monkeypatch.chdir(tmp_path)
    copy = changed(edit)
    for file in tmp_path.glob('dumped.py'):
        shutil.copy(file, copy)
    with pytest.raises(UserError, match=rf'iter_2\.pth: {message}'):
        find_run('copy', copy)


def test_a_damaged_checkpoint_and_one_without_a_config_are_named(compared, tmp_path):
    """An earlier one would give figures of another training than the folder's."""
    shutil.copytree(compared / 'cct', tmp_path, dirs_exist_ok=True)
    shutil.copy(tmp_path / 'iter_2.pth', tmp_path / 'iter_1.pth')
    (tmp_path / 'iter_2.pth').write_bytes(b'PK')
    with pytest.raises(UserError, match=r'iter_2\.pth: '):
        find_run('a', tmp_path)
    torch.save(dict(state_dict=dict(a=torch.zeros(1))), tmp_path / 'iter_2.pth')
    with pytest.raises(UserError, match=r'iter_2\.pth: has no config; expected the checkpoint'):
        find_run('a', tmp_path)


@pytest.mark.parametrize(
    ('mask', 'message'),
    [(200, r'.*v0\.png .*: label id 200'), (255, 'no pixel with a class'), (None, 'has no masks')],
)
def test_a_test_set_that_gives_no_iou_is_named(compared, tmp_path, mask, message):
    run, load = find_run('CCT', compared / 'cct'), [world.LOAD_IMAGE]
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
    assert _seconds_per_iteration(Run('a', Config(), '', logs)) == '0.25'


def test_a_validation_set_of_its_own_is_no_test_set(compared):
    run = find_run('CCT', compared / 'cct')
    (line,) = _validation_notes(run, ['car'])
    shown = dataclasses.replace(run, scalars=[{'IoU.car': 50.0}])
    first, _ = _validation_notes(shown, ['car', 'rust'])
    assert first.startswith('rust: in none of the validation masks')
    assert line.startswith('only 2 validation images')
