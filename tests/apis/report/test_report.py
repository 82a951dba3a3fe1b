"""The report on finished runs: two tiny trainings, and what it says of unequal ones."""

import base64
import html
import itertools
import json
from dataclasses import asdict

import cv2
import numpy as np
import pytest
from mmengine.config import Config

from mmseg_cct.apis.report.evaluation import Evaluation, Picture
from mmseg_cct.apis.report.report import (
    _errors,
    _settings,
    _shown,
    _unequal,
    data_set_name,
    hardest,
    write_report,
)
from mmseg_cct.apis.run import Run
from mmseg_cct.errors import UserError
from mmseg_cct.preflight.labeled_record import Labels


@pytest.mark.parametrize(
    ('settings', 'name'),
    [
        (dict(image_dir='data/cracks/val/images'), 'cracks'),
        (dict(data_root='data/camvid', image_dir='images'), 'camvid'),
        ({}, 'ShapesDataset'),
    ],
)
def test_a_data_set_is_named_by_its_folder(settings, name):
    dataset = dict(type='ShapesDataset', **settings)
    assert data_set_name(Config(dict(test_dataloader=dict(dataset=dataset)))) == name


def test_report_of_two_trainings(trained, changed, tmp_path, checkpoints_read):
    out, work_dirs = tmp_path / 'out', {'<a>': trained.work_dir, 'CCT': changed(lambda config: 0)}
    report = write_report(work_dirs, out)
    assert checkpoints_read == [str(folder / 'iter_6.pth') for folder in work_dirs.values()]
    assert report.title == '<a> and CCT on data'
    settings = {name: values for name, *values in report.settings.rows}
    assert settings['labelled images'] == ['3', '3'] and settings['unlabelled images'] == ['5', '5']
    assert settings['iterations'] == ['6', '6'] and settings['seed'] == ['0', '0']
    assert any(note.startswith('only 3 validation images') for note in report.notes)
    assert report.runs == [*work_dirs] and report.num_images == 3
    assert report.scores[-1].name == 'mean' and len(report.images) == 3
    assert f"'<a>={trained.work_dir}' CCT=" in report.command
    assert json.loads((out / 'report.json').read_text()) == json.loads(json.dumps(asdict(report)))

    page = (out / 'report.html').read_text()
    assert page.count('class="compare"') == 2 * 3
    assert page.count('src="data:image/png;base64,') == 3 * 6
    assert page.count('class="note"') == len(report.notes)
    assert 'src="h' not in page  # nothing from elsewhere
    assert 'background: rgb(200, 0, 0)"></i>thing' in page and '<a>' not in page
    for content in (report.verdict, report.date, report.command, *report.confusions['CCT']):
        assert html.escape(content).replace('&#x27;', '&#39;') in page


def test_runs_with_different_test_sets_and_incomplete_ones_are_refused(trained, changed, tmp_path):
    other = changed(lambda config: config.test_dataloader.dataset.update(indices=2))
    with pytest.raises(UserError, match='b: a different test set than a'):
        write_report(dict(a=trained.work_dir, b=other), tmp_path / 'out')
    with pytest.raises(UserError, match='holds no config'):
        write_report(dict(a=tmp_path), tmp_path / 'out')
    with pytest.raises(UserError, match='no run; expected at least one'):
        write_report({}, tmp_path / 'out')


def test_runs_that_cannot_be_compared_are_said_to_be_first(trained, changed, tmp_path):
    other = changed(lambda config: config.update(randomness=dict(seed=7)))
    report = write_report(dict(a=trained.work_dir, b=other), tmp_path / 'out')
    start = 'These runs cannot be compared: they differ in seed (0, 7). mIoU: a '
    assert report.verdict.startswith(start)
    page = (tmp_path / 'out' / 'report.html').read_text()
    assert page.index(start) < page.index('class="note"')


@pytest.mark.parametrize(
    ('key', 'change', 'said'),
    [
        ('iter', 60, 'iterations (200, 60)'),
        ('model', dict(data_preprocessor=dict(size=(8, 16))), 'crop (32×32, 16×8)'),
        ('labels', ['a', 'c'], 'which images are labelled'),
        ('labels', ['a', 'b', 'c'], 'labelled images (2, 3)'),
        (None, None, ''),
    ],
)
def test_what_makes_a_comparison_unfair(key, change, said):
    disks = itertools.count()

    def settings_of(config, iterations, labeled):
        run = Run(Config(config), '', 'a')
        run.content = dict(meta=dict(iter=iterations))
        disk = next(disks)  # each run has its own
        paths = [f'/disk{disk}/{name}' for name in labeled]
        run.labels = Labels(paths, 5)
        return _settings(run)

    config = dict(model=dict(data_preprocessor=dict(size=(32, 32))))
    other = {**config, **({key: change} if key in config else {})}
    first = settings_of(config, 200, ['a', 'b'])
    second = settings_of(
        other, change if key == 'iter' else 200, change if key == 'labels' else ['a', 'b']
    )
    assert _unequal([first, second]) == said


def test_pictures_keep_their_colours_and_hard_images_have_the_lowest_mean_over_the_runs():
    url = _shown(np.full((2, 3, 3), (200, 100, 50), np.uint8))
    png = np.frombuffer(base64.b64decode(url.partition(',')[2]), np.uint8)
    assert cv2.imdecode(png, cv2.IMREAD_COLOR)[0, 0].tolist() == [50, 100, 200]  # BGR
    shares = ([9, 1, 5, 2], [9, 6, 1, 2])
    a, b = (Evaluation(np.array([[[n, 10 - n], [0, 0]] for n in each])) for each in shares)
    assert hardest([a, b], 2) == [3, 2]


def test_errors_have_the_colour_of_what_they_are_taken_for():
    truth, predicted = np.array([[0, 1, 255]]), np.array([[0, 0, 1]])
    picture = Picture('a', np.zeros((1, 3, 3), np.uint8), truth, predicted)
    assert _errors(picture, [(255, 0, 0), (0, 255, 0)])[0].tolist() == [
        [150] * 3, [255, 0, 0], [150] * 3,
    ]  # fmt: skip


@pytest.mark.parametrize(('run', 'folder'), [('x, n = 20=empty', 'empty'), ('x=lr=0.1', 'lr=0.1')])
def test_names_and_folders_may_hold_an_equals_sign(run, folder, tmp_path, monkeypatch, refused):
    monkeypatch.chdir(tmp_path)
    (tmp_path / folder).mkdir()
    assert refused('report', run, '--out', 'out').startswith(f'error: {folder}: holds no config')
