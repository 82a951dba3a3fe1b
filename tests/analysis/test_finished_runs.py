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

from mmseg_cct.analysis.finished_runs import (
    Run,
    evaluate,
    find_run,
    predict_images,
    read_scalars,
)
from mmseg_cct.analysis.report import (
    _seconds_per_iteration,
    _validation_notes,
    write_report,
)
from mmseg_cct.engine.safe_loading import load_data
from mmseg_cct.errors import UserError


def write_log(work_dir, start, lines):
    folder = work_dir / start / 'vis_data'
    folder.mkdir(parents=True)
    (folder / 'scalars.json').write_text('\n'.join(map(json.dumps, lines)))


def test_scalars_of_a_resumed_run_replace_what_it_repeats(tmp_path):
    write_log(tmp_path, '20260101_000000', [dict(step=1, lr=1), dict(step=2, lr=1)])
    write_log(tmp_path, '20260102_000000', [dict(step=2, lr=9), dict(step=2, mIoU=5.0)])
    assert read_scalars(tmp_path) == [
        dict(step=1, lr=1), dict(step=2, lr=9), dict(step=2, mIoU=5.0)
    ]  # fmt: skip


def test_a_last_line_that_a_kill_has_cut_off_is_left_out(tmp_path):
    write_log(tmp_path, '20260101_000000', [dict(step=1, lr=1)])
    file = tmp_path / '20260101_000000/vis_data/scalars.json'
    file.write_text(file.read_text() + '\n{"step": 2, "l')
    assert read_scalars(tmp_path) == [dict(step=1, lr=1)]


@pytest.mark.parametrize(
    'line',
    [
        *('{"step": 2, "l', '3', '\ufffd', '{"step": "a"}', '{"lr": [1]}', '[' * 10**5),
        f'{{"step": 1{"0" * 400}}}',
    ],
)
def test_a_damaged_line_of_a_log_is_named(tmp_path, line):
    write_log(tmp_path, '20260101_000000', [dict(step=1, lr=1)])
    file = tmp_path / '20260101_000000/vis_data/scalars.json'
    file.write_text(line + '\n' + file.read_text())
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
    with pytest.raises(
        UserError, match=r"run 'a\\n# b': more than one line; expected a name on one line"
    ):
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


def test_a_run_without_a_test_set_is_one_line(changed):
    message = r'iter_2\.pth: its config has no test_dataloader; expected a test set'
    with pytest.raises(UserError, match=message):
        find_run('copy', changed(lambda config: config.pop('test_dataloader')))


def test_modules_that_cannot_be_imported_are_one_line(changed, tmp_path):
    def edit(config):
        config.custom_imports.imports = ['no_such_module']
        config.dump(tmp_path / 'dumped.py')

    copy = changed(edit)
    shutil.copy(tmp_path / 'dumped.py', copy)
    message = r'iter_2\.pth: custom_imports: ImportError: .*no_such_module; expected modules'
    with pytest.raises(UserError, match=message):
        find_run('copy', copy)


def test_a_damaged_checkpoint_is_named(compared, tmp_path):
    """An earlier one would give figures of another training than the folder's."""
    shutil.copytree(compared / 'cct', tmp_path, dirs_exist_ok=True)
    shutil.copy(tmp_path / 'iter_2.pth', tmp_path / 'iter_1.pth')
    (tmp_path / 'iter_2.pth').write_bytes(b'PK')
    with pytest.raises(UserError, match=r'iter_2\.pth: '):
        find_run('a', tmp_path)


def test_a_checkpoint_without_a_config_is_named(tmp_path):
    torch.save(dict(state_dict=dict(a=torch.zeros(1))), tmp_path / 'iter_2.pth')
    with pytest.raises(UserError, match=r'iter_2\.pth: has no config; expected the checkpoint'):
        find_run('a', tmp_path)


def run_on(compared, root, num_images=2):
    """A run whose test set is drawn into a folder."""
    run = find_run('CCT', compared / 'cct')
    rng = np.random.default_rng(0)
    for index in range(num_images):
        world.write_scene(root, f'{index}', rng)
    run.config.test_dataloader.dataset = dict(
        type='FolderDataset',
        data_root=str(root),
        image_dir='images',
        mask_dir='masks',
        classes=('a', 'b', 'c'),
        pipeline=[
            dict(type='LoadImageFromFile'),
            dict(type='LoadAnnotations'),
            dict(type='PackSegInputs'),
        ],
    )
    return run


def test_bad_data_of_a_test_set_are_named(compared, tmp_path):
    run = run_on(compared, tmp_path)
    cv2.imwrite(str(tmp_path / 'masks/1.png'), np.full((32, 40), 200, np.uint8))
    with pytest.raises(UserError, match=r'CCT: test_dataloader\.dataset: .*1\.png: label id 200'):
        evaluate(run)


def test_a_test_set_without_a_labelled_pixel_is_named(compared, tmp_path):
    run = run_on(compared, tmp_path, num_images=1)
    cv2.imwrite(str(tmp_path / 'masks/0.png'), np.full((32, 40), 255, np.uint8))
    with pytest.raises(UserError, match=r'CCT: test_dataloader\.dataset: no pixel with a class'):
        evaluate(run)


def test_a_test_set_without_masks_is_named(compared):
    run = find_run('CCT', compared / 'cct')
    run.config.test_dataloader.dataset.pipeline[0].with_seg_map = False
    with pytest.raises(UserError, match=r'CCT: test_dataloader\.dataset: has no masks'):
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
