import html
import json
import shutil
from dataclasses import asdict

import numpy as np
import pytest
from mmengine.config import Config

from mmseg_cct.apis.report.evaluation import Evaluation
from mmseg_cct.apis.report.report import hardest, unequal_settings, write_report
from mmseg_cct.apis.run import Run
from mmseg_cct.datasets.leaves import image_paths
from mmseg_cct.engine.labels_record import Labels, read_labels, write_labels
from mmseg_cct.errors import UserError


@pytest.fixture
def changed(trained, tmp_path):
    """Copies the trained run and changes the config in it."""

    def change(edit):
        copy = shutil.copytree(trained.work_dir, tmp_path / 'changed')
        config = Config.fromfile(copy / 'tiny.py')
        edit(config)
        config.dump(copy / 'tiny.py')
        return copy

    return change


def opened(work_dirs):
    return [Run.open(work_dir, name=name) for name, work_dir in work_dirs.items()]


def test_report_of_two_trainings(trained, changed, tmp_path, checkpoints_read):
    out, work_dirs = tmp_path / 'out', {'<a>': trained.work_dir, 'CCT': changed(lambda config: 0)}
    report = write_report(opened(work_dirs), out)
    assert checkpoints_read == [str(folder / 'iter_6.pth') for folder in work_dirs.values()]
    assert report.title == '<a> and CCT on data'
    settings = {name: values for name, *values in report.settings.rows}
    assert settings['labelled images'] == ['3', '3'] and settings['unlabelled images'] == ['5', '5']
    assert settings['iterations'] == ['6', '6'] and settings['seed'] == ['0', '0']
    assert report.notes  # of few validation images
    assert report.runs == [*work_dirs] and report.num_images == 3
    assert report.scores[-1].name == 'mean' and len(report.images) == 3
    assert f"'<a>={trained.work_dir}/iter_6.pth' CCT=" in report.command
    assert json.loads((out / 'report.json').read_text()) == json.loads(json.dumps(asdict(report)))

    page = (out / 'report.html').read_text()
    assert page.count('src="data:image/png;base64,') == 3 * 4 + 1
    assert 'src="h' not in page  # nothing from elsewhere
    assert 'background: rgb(200, 0, 0)"></i>thing' in page and '<a>' not in page
    for content in (report.verdict, report.date, report.command, *report.confusions['CCT']):
        assert html.escape(content).replace('&#x27;', '&#39;') in page


def test_runs_with_different_test_sets_are_refused(trained, changed, tmp_path):
    other = changed(lambda config: config.test_dataloader.dataset.update(indices=2))
    with pytest.raises(UserError) as error:
        write_report(opened(dict(a=trained.work_dir, b=other)), tmp_path / 'out')
    assert error.value.problems[0].key == 'b'


def test_runs_that_cannot_be_compared_are_said_to_be_first(trained, changed, tmp_path):
    other = changed(lambda config: config.update(randomness=dict(seed=7)))
    report = write_report(opened(dict(a=trained.work_dir, b=other)), tmp_path / 'out')
    assert 'cannot be compared' in report.verdict and 'seed (0, 7)' in report.verdict


def run_on(disk, iterations=200, size=(32, 32), labeled='ab', lr=0.1, **model):
    model = dict(data_preprocessor=dict(size=size), **model)
    run = Run(Config(dict(model=model, optim_wrapper=dict(optimizer=dict(lr=lr)))), '', 'a')
    labels = Labels([f'/disk{disk}/{name}' for name in labeled], 5)
    vars(run).update(content=dict(meta=dict(iter=iterations)), labels=labels)
    return run


@pytest.mark.parametrize(
    ('other', 'said'),
    [
        (dict(iterations=60), 'iterations (200, 60)'),
        (dict(size=(8, 16)), 'crop (32×32, 16×8)'),
        (dict(labeled='ac'), 'which images are labelled'),
        (dict(labeled='abc'), 'labelled images (2, 3)'),
        (dict(backbone=dict(depth=34)), 'model.backbone.depth (None, 34)'),
        (dict(pretrained='a.pth'), 'model.pretrained (None, a.pth)'),
        (dict(lr=0.2), 'optim_wrapper.optimizer.lr (0.1, 0.2)'),
        (dict(decode_head=dict(loss_decode=dict(type='BatchLovasz'))), ''),
        ({}, ''),
    ],
)
def test_what_makes_a_comparison_unfair(other, said):
    assert unequal_settings([run_on(0), run_on(1, **other)]) == said


def test_rounds_of_labelling_are_compared_and_trained_test_images_are_told(
    trained, changed, tmp_path
):
    after = changed(lambda config: 0)
    labels = read_labels(after)
    added = [*labels.labeled, str(tmp_path / 'u0.png')]
    write_labels(after, labels._replace(labeled=added))
    runs = opened(dict(before=trained.work_dir, after=after))
    report = write_report(runs, tmp_path / 'out')
    assert 'cannot be compared' not in report.verdict and '(3, 4 labels)' in report.notes[0]
    assert not any('tested on' in note for note in report.notes)

    config = Config.fromfile(after / 'tiny.py')
    config.train_dataloader.num_workers = 7  # another training: labels are unfair
    config.dump(after / 'tiny.py')
    tested = [*image_paths(runs[0].test_loader.dataset)][:1]
    write_labels(after, labels._replace(labeled=[*labels.labeled, *tested]))
    report = write_report(opened(dict(before=trained.work_dir, after=after)), tmp_path / 'out')
    assert 'labelled images (3, 4)' in report.verdict
    assert any(note.startswith('after: 1 images are both trained on') for note in report.notes)


def test_hard_images_have_the_lowest_mean_over_the_runs():
    shares = ([9, 1, 5, 2], [9, 6, 1, 2])
    a, b = (Evaluation(np.array([[[n, 10 - n], [0, 0]] for n in each])) for each in shares)
    assert hardest([a, b], 2) == [3, 2]


@pytest.mark.parametrize(('run', 'folder'), [('x, n = 20=empty', 'empty'), ('x=lr=0.1', 'lr=0.1')])
def test_names_and_folders_may_hold_an_equals_sign(run, folder, tmp_path, monkeypatch, refused):
    monkeypatch.chdir(tmp_path)
    (tmp_path / folder).mkdir()
    assert refused('report', run, '--out', 'out').startswith(f'error: {folder}: holds no config')
