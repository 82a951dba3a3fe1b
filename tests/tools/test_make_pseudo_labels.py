"""The tools of the weak setting, as a user runs them."""

import importlib.util
import json
import os
import subprocess
import sys
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


def label(weak, *args):
    return run_tool(
        'make_pseudo_labels', weak.config, weak.checkpoint, '--out', weak.out, '--workers', '0',
        '--pictures', '1', *args,
    )  # fmt: skip


def image_labels(weak, *args):
    run_tool('make_image_labels', '--images', weak.images, '--out', 'l.json', *args)


def labels_in(folder):
    return {path.relative_to(folder).as_posix() for path in Path(folder).rglob('*.png')}


def test_a_run_and_a_second_one(weak, capsys):
    assert label(weak, '--no-crf') == 0
    assert capsys.readouterr().out.splitlines()[-1] == (
        f'4 written to {weak.out}, 0 there already, 0 unreadable; see {weak.out}/report.md'
    )
    assert labels_in(f'{weak.out}/labels') == {f'{name}.png' for name in weak.names}
    assert label(weak, '--no-crf') == 0
    assert '0 written' in capsys.readouterr().out


def test_a_value_that_the_crf_cannot_take_is_refused_before_the_work(weak, capsys):
    with pytest.raises(SystemExit):
        label(weak, '--cfg-options', 'pseudo_labels.crf.gaussian_sxy=0')
    assert 'error: pseudo_labels.crf.gaussian_sxy=0: expected' in capsys.readouterr().err
    assert not Path(weak.out).exists()


def test_a_corrupt_image_is_reported_and_the_exit_code_is_1(weak, capsys):
    (weak.images / 'b.jpg').write_bytes(b'no image')
    assert label(weak, '--no-crf') == 1
    captured = capsys.readouterr()
    (line,) = [line for line in captured.err.splitlines() if line.startswith('error:')]
    assert line.startswith(f'error: {weak.images}/b.jpg: cannot be read (')
    assert '3 written' in captured.out
    assert '1 unreadable' in captured.out
    assert labels_in(f'{weak.out}/labels') == {'a.png', 'd.png', 'more/c.png'}
    assert Path(weak.out, 'report.md').read_text().startswith('# Pseudo labels of 3 images')


def test_without_pydensecrf_one_line_and_no_crf_still_works(weak, capsys, monkeypatch):
    find_spec = importlib.util.find_spec
    monkeypatch.setattr(
        crf.importlib.util, 'find_spec',
        lambda name, *args: None if name == 'pydensecrf' else find_spec(name, *args),
    )  # fmt: skip
    with pytest.raises(SystemExit) as caught:
        label(weak)
    assert caught.value.code == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith('error: pydensecrf is not installed')
    assert not Path(weak.out).exists()
    assert label(weak, '--no-crf') == 0


def test_a_missing_checkpoint_is_one_line(weak, capsys):
    weak.checkpoint = 'none.pth'
    with pytest.raises(SystemExit):
        label(weak)
    assert capsys.readouterr().err == 'error: none.pth: no such checkpoint file\n'


def label_classes(weak, classes):
    """Lets the images' labels name other classes."""
    file = weak.root / 'labels.json'
    content = json.loads(file.read_text())
    file.write_text(json.dumps(dict(content, metainfo=dict(classes=classes))))


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
    label_classes(weak, classes)
    with pytest.raises(SystemExit):
        label(weak, '--no-crf')
    assert message in capsys.readouterr().err
    assert not Path(weak.out).exists()


def test_without_any_image_their_lines_come(weak, capsys):
    options = ['--cfg-options', 'pseudo_labels.images.data_prefix=none']
    assert label(weak, '--no-crf', *options) == 1
    captured = capsys.readouterr()
    assert [line.split(': ')[1] for line in captured.err.splitlines() if 'error: ' in line] == [
        f'{weak.root}/none/{name}.jpg' for name in sorted(weak.names)
    ]
    assert f'0 written to {weak.out}, 0 there already, 4 unreadable' in captured.out


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
def test_worker_processes_write_what_this_one_writes(weak, project_root):
    pytest.importorskip('pydensecrf', reason='the CRF is its (extra `weak`)')
    command = [
        sys.executable, project_root / 'tools/make_pseudo_labels.py', weak.config, weak.checkpoint,
        '--out', 'workers', '--workers', '1', '--pictures', '0',
    ]  # fmt: skip
    environment = {**os.environ, 'PYTHONPATH': str(project_root), 'PYTHONWARNINGS': 'ignore'}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr
    assert '4/4' in done.stderr
    assert 'image/s' in done.stderr
    assert label(weak) == 0
    for folder in ('labels', 'before_crf'):
        for name in weak.names:
            path = Path(folder, f'{name}.png')
            assert (Path('workers') / path).read_bytes() == (Path(weak.out) / path).read_bytes()


class TestImageLabels:
    def test_from_a_table(self, weak, capsys):
        Path('table.csv').write_text('image,labels\na.jpg,other;thing\nmore/c.jpg,thing\n')
        image_labels(
            weak, '--csv', 'table.csv', '--classes', *weak.classes, '--background', 'ground'
        )
        assert capsys.readouterr().out == (
            'wrote l.json: 2 images; with each class: thing 2, other 1\n'
        )
        data = json.loads(Path('l.json').read_text())
        assert data['metainfo'] == {'classes': ['thing', 'other']}
        assert data['data_list'][0] == {'img_path': 'a.jpg', 'gt_label': [0, 1]}

    def test_of_a_table_only_the_images_of_a_list(self, weak):
        Path('table.csv').write_text('image,labels\na.jpg,other\nb.jpg,other\nd.jpg,thing\n')
        Path('names.txt').write_text('d\nb\n')
        image_labels(
            weak, '--csv', 'table.csv', '--list', 'names.txt', '--classes', 'thing', 'other'
        )
        assert json.loads(Path('l.json').read_text())['data_list'] == [
            {'img_path': 'b.jpg', 'gt_label': [1]}, {'img_path': 'd.jpg', 'gt_label': [0]},
        ]  # fmt: skip

    def test_a_table_has_no_pixels_to_count(self, weak, capsys):
        Path('table.csv').write_text('image,labels\na.jpg,other\n')
        with pytest.raises(SystemExit):
            image_labels(weak, '--csv', 'table.csv', '--classes', 'other', '--min-pixels', 5)
        assert '--min-pixels 5: counts in masks; expected --masks' in capsys.readouterr().err

    def test_classes_without_an_image_are_named(self, weak, capsys):
        image_labels(
            weak, '--masks', weak.masks, '--classes', *weak.classes, '--min-pixels', 100000
        )
        assert capsys.readouterr().out.splitlines()[-2] == (
            'warning: l.json: ground, thing, other (3 of 3 classes) in none of the 4 images; '
            'expected each class in one'
        )

    def test_from_masks_of_a_data_set_with_its_own_mapping(self, weak, capsys):
        for name in weak.names:  # 11 is void in CamVid
            Image.fromarray(np.full((4, 4), 11, np.uint8)).save(weak.masks / f'{name}.png')
        Image.fromarray(np.array([[8, 11]], np.uint8)).save(weak.masks / 'd.png')
        Path('names.txt').write_text('d\na.jpg\n')
        image_labels(
            weak, '--masks', weak.masks, '--dataset', 'CamVidDataset', '--list', 'names.txt'
        )
        assert [
            item['gt_label'] for item in json.loads(Path('l.json').read_text())['data_list']
        ] == [[8], []]

    def test_from_masks_of_a_data_set_whose_zero_is_void(self, weak, capsys):
        for name in weak.names:  # void, wall and sky
            Image.fromarray(np.array([[0, 1, 3]], np.uint8)).save(weak.masks / f'{name}.png')
        image_labels(weak, '--masks', weak.masks, '--dataset', 'ADE20KDataset')
        (present,) = {
            tuple(item['gt_label']) for item in json.loads(Path('l.json').read_text())['data_list']
        }
        assert present == (0, 2)

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


@pytest.mark.slow
@without_cuda
def test_two_processes_label_what_one_does(weak, tmp_path):
    assert label(weak, '--no-crf') == 0
    out = weak.out + '_two'
    (code, said, error), second = outcomes(
        start_tool(
            tmp_path, 'make_pseudo_labels', weak.config, weak.checkpoint, '--out', out,
            '--workers', '0', '--pictures', '1', '--no-crf',
        )
    )  # fmt: skip
    assert (code, second[0]) == (0, 0), error + second[2]
    names = labels_in(Path(weak.out, 'labels'))
    assert labels_in(Path(out, 'labels')) == names
    assert f'{len(names)} written to {out}, 0 there already' in said
    for name in names:
        one, two = (np.array(Image.open(Path(run, 'labels', name))) for run in (weak.out, out))
        assert np.array_equal(one, two)
    assert Path(out, 'report.md').is_file()
