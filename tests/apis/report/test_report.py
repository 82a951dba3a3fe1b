"""The report on finished runs, from hand-made logs and from two tiny trainings."""

import base64
import html
import json
from dataclasses import asdict

import cv2
import numpy as np
import pytest
from markdown_it import MarkdownIt

from mmseg_cct.apis.finished_runs import Evaluation
from mmseg_cct.apis.report.plots import plot_class_iou
from mmseg_cct.apis.report.report import Report, _shown, hardest, write_report
from mmseg_cct.apis.report.scores import Score, score_table
from mmseg_cct.errors import UserError
from mmseg_cct.utils.templates import Table, render


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


def test_report_of_two_trainings(compared, tmp_path, checkpoints_read):
    work_dirs = dict(supervised=compared / 'supervised', CCT=compared / 'cct')
    out = tmp_path / 'out'
    report = write_report(work_dirs, out, num_pictures=2)
    assert checkpoints_read == [str(folder / 'iter_2.pth') for folder in work_dirs.values()]
    settings = {name: values for name, *values in report.settings.rows}
    assert settings['labelled images'] == ['2', '2'] and settings['unlabelled images'] == ['0', '3']
    assert settings['iterations'] == ['2', '2'] and settings['seed'] == ['0', '0']
    assert any(note.startswith('only 2 validation images') for note in report.notes)
    assert report.runs == ['supervised', 'CCT'] and report.num_images == 3
    assert report.scores[-1].name == 'mean' and len(report.images['Hard test images']) == 2
    command, *tests = report.commands
    assert f' supervised={work_dirs["supervised"]} CCT=' in command and len(tests) == 2
    assert json.loads((out / 'report.json').read_text()) == json.loads(json.dumps(asdict(report)))

    text = (out / 'report.md').read_text()
    assert report.verdict in text and text.count('> **Note.**') == len(report.notes)
    page = (out / 'report.html').read_text()
    assert 'test set of 3 images' in page
    assert page.count('class="compare"') == 3  # two hard images and the one that is left
    assert page.count('src="data:image/png;base64,') == 2 + 3 * 4
    assert page.count('srcset="data:image/png;base64,') == 1
    assert page.count('class="note"') == len(report.notes)
    assert 'src="h' not in page  # nothing from elsewhere
    assert 'background: rgb(225, 70, 60)"></i>disc' in page
    for content in (report.verdict, report.date, *report.commands):
        assert html.escape(content, quote=False) in page
    for score in report.scores:
        cells = ''.join(f'<td>{value:.1f}</td>' for value in score.values)
        assert f'<td>{score.name}</td>{cells}' in page
    write_report(work_dirs, out, num_pictures=2)  # its own folder


def test_names_with_markup_are_text():
    """They may come from a stranger's checkpoint."""
    name = '<script>alert(1)</script>'
    table = Table(['', name], [[name, name]])
    content = [name, '2026-11-30', '1', [name], name, [name], [name], table, 3, [], [table], {}]
    page = render(
        'apis/report/report.html.jinja',
        report=Report(*content),
        scores=table,
        figures=dict(classes='', curves='', narrow_curves=''),
        legend=[(name, (1, 2, 3))],
        sections={name: [dict(name=name, image='', truth='', predictions={name: ''})]},
    )
    assert name not in page and page.count('&lt;script&gt;alert(1)&lt;/script&gt;') > 10


def test_names_are_no_markdown():
    names = ['<script>alert(1)</script>', '![x](http://example.invalid/x.png)', 'a\n\n# b | c']
    scores = [Score(name, [1.0]) for name in names]
    table = Table(['', names[0]], [[names[1], names[2]]])
    report = Report(
        *(names[1], '2026-11-30', '1', ['python -m x "<b>"\n# y'], names[0], names, names[:1]),
        *(table, 3, scores, [table], {}),
    )
    scores = score_table(scores, names[:1])
    page = render('apis/report/report.md.jinja', report=report, scores=scores)
    tokens = MarkdownIt('commonmark').enable('table').parse(page)
    parts = [part for token in tokens for part in token.children or ()]
    assert not [token for token in tokens if token.type == 'html_block']
    assert {part.type for part in parts} == {'text', 'strong_open', 'strong_close'}
    assert [token.type for token in tokens].count('heading_open') == 4  # none of a name
    texts = [token.content for token in tokens if token.type == 'inline']
    assert texts.count('a # b | c') == 3  # one cell in each table


def test_runs_with_different_test_sets_are_refused(compared, changed, tmp_path):
    other = changed(lambda config: config.test_dataloader.dataset.update(start=7))
    with pytest.raises(UserError, match='b: a different test set than a'):
        write_report(dict(a=compared / 'cct', b=other), tmp_path / 'out')


def test_pictures_keep_their_colours_and_hard_images_have_the_lowest_mean_over_the_runs():
    url = _shown(np.full((2, 3, 3), (200, 100, 50), np.uint8))
    png = np.frombuffer(base64.b64decode(url.partition(',')[2]), np.uint8)
    assert cv2.imdecode(png, cv2.IMREAD_COLOR)[0, 0].tolist() == [50, 100, 200]  # BGR
    a = Evaluation(np.ones(1), np.array([0.9, 0.1, 0.5, 0.2]), np.ones((3, 1)))
    b = Evaluation(np.ones(1), np.array([0.9, 0.6, 0.1, 0.2]), np.ones((3, 1)))
    assert hardest([a, b], 2) == [3, 2]


def test_a_run_whose_config_has_lost_its_training_is_reported(changed, tmp_path):
    parts = dict.fromkeys(('train_dataloader', 'train_cfg', 'val_dataloader', 'randomness'))
    run = changed(lambda config: config.update(parts))
    report = write_report(dict(a=run), tmp_path / 'out', num_pictures=1)
    assert [row[1] for row in report.settings.rows][:4] == ['', '0', '', '']
