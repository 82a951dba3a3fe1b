"""The tools of the weak setting, as a user runs them."""

import importlib.util
import json
from pathlib import Path

import numpy as np
import pytest
import tiny_weak
import torch
from PIL import Image
from ranks import outcomes, start_tool, without_cuda
from world import run_tool

from mmseg_cct.pseudo_labels import crf


@pytest.fixture
def weak(tmp_path, monkeypatch):
    pytest.importorskip('mmpretrain', reason='the classifier is made of its parts (extra `weak`)')
    monkeypatch.chdir(tmp_path)
    return tiny_weak.make_weak(tmp_path)


def arguments(weak, out, *args):
    tool = 'make_pseudo_labels', weak.config, weak.checkpoint
    return *tool, '--out', out, '--workers', 0, '--pictures', 1, *args


def label(weak, *args):
    return run_tool(*arguments(weak, weak.out, *args))


def assert_equal_labels(weak, other, folders=('labels',)):
    for folder in folders:
        for name in weak.names:
            path = Path(folder, f'{name}.png')
            assert (Path(other) / path).read_bytes() == (Path(weak.out) / path).read_bytes()


def test_a_run_and_a_second_one(weak, capsys):
    assert label(weak, '--no-crf') == 0
    assert capsys.readouterr().out.splitlines()[-1] == (
        f'4 written to {weak.out}, 0 there already, 0 unreadable; see {weak.out}/report.md'
    )
    assert_equal_labels(weak, weak.out)
    assert label(weak, '--no-crf') == 0
    assert '0 written' in capsys.readouterr().out


def test_a_corrupt_image_is_reported_and_the_exit_code_is_1(weak, capsys):
    (weak.images / 'b.jpg').write_bytes(b'no image')
    assert label(weak, '--no-crf') == 1
    captured = capsys.readouterr()
    (line,) = [line for line in captured.err.splitlines() if line.startswith('error:')]
    assert line.startswith(f'error: {weak.images}/b.jpg: cannot be read (')
    assert f'3 written to {weak.out}, 0 there already, 1 unreadable' in captured.out
    assert Path(weak.out, 'report.md').read_text().startswith('# Pseudo labels of 3 images')


def test_without_pydensecrf_one_line_and_no_crf_still_works(weak, capsys, monkeypatch):
    find_spec = importlib.util.find_spec
    monkeypatch.setattr(
        crf.importlib.util, 'find_spec',
        lambda name, *args: None if name == 'pydensecrf' else find_spec(name, *args),
    )  # fmt: skip
    with pytest.raises(SystemExit, match='2'):
        label(weak)
    assert capsys.readouterr().err.startswith('error: pydensecrf is not installed')
    assert not Path(weak.out).exists()
    assert label(weak, '--no-crf') == 0


@pytest.mark.parametrize(
    ('classes', 'message'),
    [
        (['other', 'thing'], 'cam.pth: class 0 is thing, in the data set other; expected the same'),
        (['thing', 'other', 'ground'], 'model.head.num_classes=2: expected 3, the classes of pseu'),
    ],
)
def test_labels_of_other_classes_than_the_classifiers(weak, capsys, classes, message):
    content = torch.load(weak.checkpoint)
    content['meta'] = dict(dataset_meta=dict(classes=['thing', 'other']))
    torch.save(content, weak.checkpoint)
    file = weak.root / 'labels.json'
    file.write_text(json.dumps(json.loads(file.read_text()) | dict(metainfo=dict(classes=classes))))
    with pytest.raises(SystemExit):
        label(weak, '--no-crf')
    assert message in capsys.readouterr().err
    assert not Path(weak.out).exists()


@pytest.mark.parametrize(
    ('option', 'message'),
    [
        ('pseudo_labels.crf.gaussian_sxy=0', 'error: pseudo_labels.crf.gaussian_sxy=0: expected'),
        ('pseudo_labels.images.data_prefix=none', '/none/b.jpg: '),
    ],
)
def test_what_cannot_be_labelled_leaves_no_labels(weak, capsys, option, message):
    try:
        assert label(weak, '--cfg-options', option) == 1
    except SystemExit as end:
        assert end.code == 2
    assert message in capsys.readouterr().err
    assert not list(Path(weak.out).glob('labels/*'))


@pytest.mark.parametrize('finished', [False, True])
def test_a_mask_of_another_size_than_its_image(weak, capsys, finished):
    if finished:
        assert label(weak, '--no-crf') == 0
    Image.new('L', (5, 4)).save(weak.masks / 'b.png')
    (weak.images / 'a.jpg').write_bytes(b'no image')  # which is counted and stops nothing
    with pytest.raises(SystemExit):
        label(weak, '--no-crf')
    assert capsys.readouterr().err.splitlines()[-1] == (
        f'error: {weak.masks}/b.png: 5×4 pixels; expected 32×24, the size of its image '
        f'{weak.images}/b.jpg'
    )


@pytest.mark.slow
def test_worker_processes_write_what_this_one_writes(weak, capsys):
    pytest.importorskip('pydensecrf', reason='the CRF is its (extra `weak`)')
    assert run_tool(*arguments(weak, 'workers', '--workers', 1)) == 0
    said = capsys.readouterr().err
    assert '4/4' in said and 'image/s' in said
    assert label(weak) == 0
    assert_equal_labels(weak, 'workers', ('labels', 'before_crf'))


@pytest.mark.slow
@without_cuda
def test_two_processes_label_what_one_does(weak, tmp_path):
    assert label(weak, '--no-crf') == 0
    (code, said, error), second = outcomes(
        start_tool(tmp_path, *arguments(weak, 'two', '--no-crf'))
    )
    assert (code, second[0]) == (0, 0), error + second[2]
    assert '4 written to two, 0 there already' in said
    assert_equal_labels(weak, 'two')
    assert Path('two', 'report.md').is_file()


def image_labels(weak, *args):
    """Runs the tool; gives the classes, and the ids by image, that it writes."""
    run_tool('make_image_labels', '--images', weak.images, '--out', 'l.json', *args)
    written = json.loads(Path('l.json').read_text())
    ids = {item['img_path']: item['gt_label'] for item in written['data_list']}
    return written['metainfo']['classes'], ids


class TestImageLabels:
    def test_from_a_table(self, weak, capsys):
        Path('table.csv').write_text('image,labels\na.jpg,other;thing\nmore/c.jpg,thing\n')
        options = ('--csv', 'table.csv', '--classes', *weak.classes, '--background', 'ground')
        found = ['thing', 'other'], {'a.jpg': [0, 1], 'more/c.jpg': [0]}
        assert image_labels(weak, *options) == found
        said = 'wrote l.json: 2 images; with each class: thing 2, other 1\n'
        assert capsys.readouterr().out == said

    def test_of_a_table_only_the_images_of_a_list(self, weak):
        Path('table.csv').write_text('image,labels\na.jpg,other\nb.jpg,other\nd.jpg,thing\n')
        Path('names.txt').write_text('d\nb\n')
        options = ('--csv', 'table.csv', '--list', 'names.txt', '--classes', 'thing', 'other')
        assert image_labels(weak, *options)[1] == {'b.jpg': [1], 'd.jpg': [0]}

    def test_classes_without_an_image_are_named(self, weak, capsys):
        options = ('--masks', weak.masks, '--classes', *weak.classes, '--min-pixels', 100000)
        image_labels(weak, *options)
        assert capsys.readouterr().out.splitlines()[-2] == (
            'warning: l.json: ground, thing, other (3 of 3 classes) in none of the 4 images; '
            'expected each class in one'
        )

    @pytest.mark.parametrize(
        ('kind', 'mask', 'found'),
        [
            ('CamVidDataset', [8, 11], [8]),  # 11 is void
            ('ADE20KDataset', [0, 1, 3], [0, 2]),  # 0 is void
        ],
    )
    def test_from_masks_of_a_data_set_with_its_own_mapping(self, weak, kind, mask, found):
        Path('names.txt').write_text('d\na.jpg\n')
        for name in weak.names:
            Image.fromarray(np.array([mask], np.uint8)).save(weak.masks / f'{name}.png')
        options = ('--masks', weak.masks, '--dataset', kind, '--list', 'names.txt')
        assert image_labels(weak, *options)[1] == {'d.jpg': found, 'a.jpg': found}

    @pytest.mark.parametrize(
        ('args', 'message'),
        [
            (['--dataset', 'NoDataset'], r'--dataset NoDataset: no data set of MMSeg with class'),
            (
                ['--classes', 'a', '--background', 'b'],
                r'--background b: not a class; expected one of',
            ),
            (['--classes', 'a', 'a', 'b'], "--classes=('a', 'a', 'b'): expected every name once"),
            (
                ['--classes', 'a', 'b', '--background', 'b', 'a'],
                '--background b a: leaves no class; expected some of a, b only',
            ),
        ],
    )
    def test_mistakes_are_one_line(self, weak, capsys, args, message):
        with pytest.raises(SystemExit):
            image_labels(weak, '--masks', weak.masks, *args)
        assert message in capsys.readouterr().err

    def test_a_table_has_no_pixels_to_count(self, weak, capsys):
        Path('table.csv').write_text('image,labels\na.jpg,other\n')
        with pytest.raises(SystemExit):
            image_labels(weak, '--csv', 'table.csv', '--classes', 'other', '--min-pixels', 5)
        assert '--min-pixels 5: counts in masks; expected --masks' in capsys.readouterr().err
