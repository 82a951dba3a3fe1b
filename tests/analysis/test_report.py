"""The report on finished runs, from hand-made logs and from two tiny trainings."""

import base64
import html
import itertools
import json
import shutil

import cv2
import numpy as np
import pytest
import torch
import world
from markdown_it import MarkdownIt
from mmengine.config import Config
from mmengine.runner import Runner

from mmseg_cct.analysis.finished_runs import (
    Evaluation,
    Picture,
    Run,
    evaluate,
    find_run,
    predict_images,
    read_scalars,
)
from mmseg_cct.analysis.plots import plot_class_iou, plot_curves, plot_grid
from mmseg_cct.analysis.report import (
    Report,
    _seconds_per_iteration,
    _shown,
    _validation_notes,
    hardest,
    write_report,
)
from mmseg_cct.analysis.scores import Score, score_table
from mmseg_cct.config.load import load_config
from mmseg_cct.config.text import read_config_text
from mmseg_cct.engine.safe_loading import load_data
from mmseg_cct.errors import UserError
from mmseg_cct.utils.markdown import Table
from mmseg_cct.utils.templates import render

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
def trained(tmp_path_factory):
    """Directories of a baseline and a CCT run of two iterations."""
    root = tmp_path_factory.mktemp('runs')
    for name in ('supervised', 'cct'):
        config = load_config('demo/cct_shapes', dict(method=name))
        config.merge_from_dict(TINY)
        config.train_dataloader.batch_size = 2
        config.train_dataloader.dataset.labeled.count = 2
        if name == 'cct':
            config.train_dataloader.dataset.unlabeled.count = 3
        config.work_dir = str(root / name)
        config.experiment_name = f'report_{name}'
        Runner.from_cfg(config).train()
    return root


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
    'line', ['{"step": 2, "l', '3', '\ufffd', '{"step": "a"}', '{"lr": [1]}', '[' * 10**5]
)
def test_a_damaged_line_of_a_log_is_named(tmp_path, line):
    write_log(tmp_path, '20260101_000000', [dict(step=1, lr=1)])
    file = tmp_path / '20260101_000000/vis_data/scalars.json'
    file.write_text(line + '\n' + file.read_text())
    with pytest.raises(UserError, match=r'scalars\.json, line 1: .*; expected a JSON object'):
        read_scalars(tmp_path)


@pytest.mark.parametrize(
    'ramp', ['auxiliary_head.loss_consistency.loss_weight', 'loss_consistency.loss_weight']
)  # CCT; Mean Teacher, VAT
def test_curves_show_each_value_in_its_panel(ramp):
    logs = [
        {'step': step, 'decode.loss_ce': 2 - step, 'decode.loss_dice': 1, ramp: 10 * step}
        for step in (1, 2)
    ]
    runs = [
        Run('sup', Config(), '', [dict(step=1, mIoU=4.0)]),
        Run('cct', Config(), '', logs),
    ]
    panels = {axes.get_title(): axes for axes in plot_curves(runs).axes}
    (line,) = panels['supervised loss Lₛ'].lines
    assert line.get_xydata().tolist() == [[1, 2], [2, 1]]
    assert line.get_color() == 'C1'
    (line,) = panels['ramps'].lines
    assert line.get_xydata().tolist() == [[1, 10], [2, 20]]
    assert line.get_label().startswith('ωᵤ') and line.get_color() not in ('C0', 'C1')
    assert [line.get_label() for line in panels['mIoU on val, %'].lines] == ['sup']
    assert not panels['consistency loss Lᵤ'].lines


def test_the_curve_of_the_foreground_is_that_of_its_iou():
    run = Run('a', Config(), '', [{'step': 1, 'mIoU': 50.0, 'IoU.crack': 9.0}])
    axes = plot_curves([run], measure='IoU.crack').axes[2]
    assert axes.get_title() == 'IoU.crack on val, %'
    assert [line.get_ydata().tolist() for line in axes.lines] == [[9]]


def test_runs_share_the_line_of_a_ramp_that_they_have_in_common():
    logs = [{'step': step, 'loss_consistency.loss_weight': step} for step in (1, 2)]
    other = [{'step': step, 'loss_consistency.loss_weight': 3} for step in (1, 2)]
    alike, unlike = (
        plot_curves([Run('a', Config(), '', logs), Run('b', Config(), '', second)], columns=2)
        for second in (logs, other)
    )
    labels = [[line.get_label() for line in figure.axes[3].lines] for figure in (alike, unlike)]
    assert labels == [['ωᵤ, weight of Lᵤ'], ['ωᵤ, weight of Lᵤ, a', 'ωᵤ, weight of Lᵤ, b']]


def test_grid_paints_class_ids_in_the_palette():
    ids = np.zeros((40, 80), int)
    ids[0, :2] = 1, 255
    picture = Picture('a.png', np.zeros((40, 80, 3), np.uint8), ids, 1 - ids % 2)
    figure = plot_grid({'run': [picture] * 3}, ['x', 'y'], [[1, 2, 3], [4, 5, 6]])
    shown = [axes.get_images()[0].get_array() for axes in figure.axes]
    assert len(shown) == 9  # image, truth and prediction of three images
    assert shown[1][0, :3].tolist() == [[4, 5, 6], [255, 255, 255], [1, 2, 3]]
    assert [text.get_text() for text in figure.legends[0].get_texts()] == ['x', 'y', 'ignored']


@pytest.mark.parametrize('height, width', [(40, 80), (80, 60)])
def test_pictures_fill_the_grid_in_their_own_shape(height, width):
    labels = np.zeros((height, width), int)
    picture = Picture('a.png', np.zeros((height, width, 3), np.uint8), labels, labels)
    figure = plot_grid({'run': [picture] * 2}, ['x', 'y'], [[1, 2, 3], [4, 5, 6]])
    figure.draw_without_rendering()
    boxes = [axes.get_window_extent() for axes in figure.axes]
    for box in boxes:
        assert box.width / box.height == pytest.approx(width / height, rel=0.08)
    columns = sum(box.width for box in boxes[:3])
    assert columns > 0.95 * figure.bbox.width


LONG = ['a supervised training with twenty labels of CamVid', 'cct_mbv2_camvid_50_' * 3]


def test_long_names_do_not_collide():
    labels = np.zeros((40, 80), int)
    picture = Picture('a.png', np.zeros((40, 80, 3), np.uint8), labels, labels)
    grid = plot_grid({name: [picture] for name in LONG}, ['x', 'y'], [[1, 2, 3], [4, 5, 6]])
    grid.draw_without_rendering()
    boxes = [axes.title.get_window_extent() for axes in grid.axes]
    assert all(left.x1 < right.x0 for left, right in itertools.pairwise(boxes))
    assert max(box.y1 for box in boxes) <= grid.bbox.height
    dots = plot_class_iou({name: np.array([0.9, 0.8]) for name in LONG}, ['x', 'y'])
    ramps = dict(step=1, **{'auxiliary_head.loss_consistency.loss_weight': 1, 'decode_head.x': 2})
    curves = plot_curves([Run(name, Config(), '', [ramps]) for name in LONG])
    assert len({line.get_color() for line in curves.axes[3].lines}) == 2
    for figure in (dots, curves):
        assert len(figure.legends[0].get_texts()) == 2


def test_classes_are_sorted_by_the_difference_and_those_at_0_are_folded():
    iou = dict(a=[0.5, 0, np.nan, 0.6, 0.5], b=[0.25, 0, np.nan, 0.7, np.nan])
    iou = {name: np.array(values) for name, values in iou.items()}
    (axes,) = plot_class_iou(iou, ['falls', 'zero', 'absent', 'rises', 'once']).axes
    labels = [label.get_text() for label in axes.get_yticklabels()]
    assert labels == ['mean', 'rises', 'once', 'falls']
    assert axes.get_xlabel().splitlines()[1:] == ['at 0: zero', 'without a pixel: absent']
    assert [text.get_text() for text in axes.texts] == ['−8.3', '+10.0', '50.0', '−25.0']
    for dots, expected in zip(axes.collections, ([40, 60, 50, 50], [31.7, 70, np.nan, 25])):
        np.testing.assert_allclose(dots.get_offsets().filled(np.nan)[:, 0], expected)


def test_hard_images_are_those_of_the_lowest_mean_over_the_runs():
    a = Evaluation(np.ones(1), np.array([0.9, 0.1, 0.5, 0.2]), np.ones((3, 1)))
    b = Evaluation(np.ones(1), np.array([0.9, 0.6, 0.1, 0.2]), np.ones((3, 1)))
    assert hardest([a, b], 2) == [3, 2]


def test_report_of_two_trainings(trained, tmp_path, checkpoints_read):
    work_dirs = dict(supervised=trained / 'supervised', CCT=trained / 'cct')
    report = write_report(work_dirs, tmp_path / 'out', num_pictures=2)
    assert checkpoints_read == [str(folder / 'iter_2.pth') for folder in work_dirs.values()]
    text = report.read_text()
    assert '| labelled images | 2 | 2 |' in text
    assert '| unlabelled images | 0 | 3 |' in text
    assert '| iterations | 2 | 2 |' in text
    assert '| seed | 0 | 0 |' in text
    assert 'test set of 3 images' in text
    for picture in ('classes.png', 'curves.png', 'hard.png', 'first.png'):
        assert f']({picture})' in text
        assert (report.parent / picture).read_bytes().startswith(b'\x89PNG')
    page = report.with_suffix('.html').read_text()
    assert page.count('class="compare"') == 3  # two hard images and the one that is left
    assert page.count('src="data:image/png;base64,') == 2 + 3 * 4
    assert page.count('srcset="data:image/png;base64,') == 1
    assert '> **Note.** only 2 validation images' in text
    assert page.count('class="note"') == text.count('> **Note.**')
    assert 'src="h' not in page  # nothing from elsewhere
    assert 'background: rgb(225, 70, 60)"></i>disc' in page
    said = json.loads((report.parent / 'report.json').read_text())
    assert said['runs'] == ['supervised', 'CCT'] and said['num_images'] == 3
    assert said['scores'][-1]['name'] == 'mean' and len(said['images']['Hard test images']) == 2
    command, *tests = said['commands']
    assert f' supervised={work_dirs["supervised"]} CCT=' in command and len(tests) == 2
    for content in (said['verdict'], said['date'], *said['commands']):
        assert content in text and html.escape(content, quote=False) in page
    for score in said['scores']:
        cells = (f'{value:.1f}' for value in score['values'])
        assert f'| {score["name"]} | {" | ".join(cells)} | ' in text
    assert write_report(work_dirs, tmp_path / 'out', num_pictures=2) == report  # its own folder


def test_names_with_markup_are_text():
    """They may come from a stranger's checkpoint."""
    names = ['<script>alert(1)</script>', '![x](http://example.invalid/x.png)', 'a\n\n# b | c']
    scores = [Score(name, [1.0]) for name in names]
    table = Table(['', names[0]], [[names[1], names[2]]])
    report = Report(
        *(names[1], '2026-11-30', '1', ['python -m x "<b>"\n# y'], names[0], names, names[:1]),
        *(table, 3, scores, [table], {'Hard test images': names}),
    )
    page = render(
        'analysis/report.md.jinja',
        report=report,
        scores=score_table(scores, names[:1]),
        grids={'hard.png': 'Hard test images'},
    )
    tokens = MarkdownIt('commonmark').enable('table').parse(page)
    parts = [part for token in tokens for part in token.children or ()]
    assert not [token for token in tokens if token.type == 'html_block']
    assert {part.type for part in parts} == {'text', 'image', 'strong_open', 'strong_close'}
    assert [part.attrs['src'] for part in parts if part.type == 'image'] == [
        *('classes.png', 'curves.png', 'hard.png')
    ]
    headings = [token.type for token in tokens].count('heading_open')
    assert headings == 6  # none of a name
    texts = [token.content for token in tokens if token.type == 'inline']
    assert texts.count('a # b | c') == 3  # one cell in each table


def test_evaluation_agrees_with_the_runners_own(trained):
    run = find_run('CCT', trained / 'cct')
    config = run.config.copy()
    config.work_dir, config.load_from = str(trained / 'test'), run.checkpoint
    config.experiment_name = 'report_test'
    expected = Runner.from_cfg(config).test()['mIoU']
    evaluation = evaluate(run)
    assert np.nanmean(evaluation.iou) * 100 == pytest.approx(expected, abs=0.01)


def test_the_iou_of_an_image_is_that_of_its_picture(trained):
    run = find_run('CCT', trained / 'cct')
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


@pytest.fixture
def changed(trained, tmp_path):
    """Copies the CCT run and changes the config in its checkpoint."""

    def change(edit):
        copy = tmp_path / 'changed'
        shutil.copytree(trained / 'cct', copy)
        content = load_data(str(copy / 'iter_2.pth'), 'iter_2.pth')
        config = read_config_text(content['meta']['cfg'], 'iter_2.pth')
        edit(config)
        content['meta']['cfg'] = config.pretty_text
        torch.save(content, copy / 'iter_2.pth')
        return copy

    return change


def test_runs_with_different_test_sets_are_refused(trained, changed, tmp_path):
    other = changed(lambda config: config.test_dataloader.dataset.update(start=7))
    with pytest.raises(UserError, match='b: a different test set than a'):
        write_report(dict(a=trained / 'cct', b=other), tmp_path / 'out')


def test_classes_in_another_order_than_the_checkpoints_are_refused(trained, tmp_path):
    shutil.copytree(trained / 'cct', tmp_path / 'run')
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


def test_a_damaged_checkpoint_is_named(trained, tmp_path):
    """An earlier one would give figures of another training than the folder's."""
    shutil.copytree(trained / 'cct', tmp_path, dirs_exist_ok=True)
    shutil.copy(tmp_path / 'iter_2.pth', tmp_path / 'iter_1.pth')
    (tmp_path / 'iter_2.pth').write_bytes(b'PK')
    with pytest.raises(UserError, match=r'iter_2\.pth: '):
        find_run('a', tmp_path)


def test_a_checkpoint_without_a_config_is_named(tmp_path):
    torch.save(dict(state_dict=dict(a=torch.zeros(1))), tmp_path / 'iter_2.pth')
    with pytest.raises(UserError, match=r'iter_2\.pth: has no config; expected the checkpoint'):
        find_run('a', tmp_path)


def run_on(trained, root, num_images=2):
    """A run whose test set is drawn into a folder."""
    run = find_run('CCT', trained / 'cct')
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


def test_bad_data_of_a_test_set_are_named(trained, tmp_path):
    run = run_on(trained, tmp_path)
    cv2.imwrite(str(tmp_path / 'masks/1.png'), np.full((32, 40), 200, np.uint8))
    with pytest.raises(UserError, match=r'CCT: test_dataloader\.dataset: .*1\.png: label id 200'):
        evaluate(run)


def test_a_test_set_without_a_labelled_pixel_is_named(trained, tmp_path):
    run = run_on(trained, tmp_path, num_images=1)
    cv2.imwrite(str(tmp_path / 'masks/0.png'), np.full((32, 40), 255, np.uint8))
    with pytest.raises(UserError, match=r'CCT: test_dataloader\.dataset: no pixel with a class'):
        evaluate(run)


def test_a_test_set_without_masks_is_named(trained):
    run = find_run('CCT', trained / 'cct')
    run.config.test_dataloader.dataset.pipeline[0].with_seg_map = False
    with pytest.raises(UserError, match=r'CCT: test_dataloader\.dataset: has no masks'):
        evaluate(run)


def test_the_time_of_an_iteration_is_the_median_of_those_that_train():
    logs = [dict(step=step, lr=1, time=time) for step, time in enumerate((9.0, 0.2, 0.3, 0.1), 1)]
    logs.append(dict(step=4, mIoU=5.0, time=50.0))  # of a validation
    assert _seconds_per_iteration(Run('a', Config(), '', logs)) == '0.25'


def test_a_validation_set_of_its_own_is_no_test_set(trained):
    run = find_run('CCT', trained / 'cct')
    shown = [name for values in run.scalars for name in values if name.startswith('IoU.')]
    classes = [name.removeprefix('IoU.') for name in dict.fromkeys(shown)]
    (line,) = _validation_notes(run, classes)
    assert line.startswith('only 2 validation images')
    if classes:
        first, _ = _validation_notes(run, [*classes, 'rust'])
        assert first.startswith('rust: in none of the validation masks')


def test_pictures_of_the_page_keep_their_colours():
    url = _shown(np.full((2, 3, 3), (200, 100, 50), np.uint8))
    png = np.frombuffer(base64.b64decode(url.partition(',')[2]), np.uint8)
    assert cv2.imdecode(png, cv2.IMREAD_COLOR)[0, 0].tolist() == [50, 100, 200]  # BGR
