from contextlib import nullcontext

import numpy as np
import pytest
from PIL import Image
from trees import LABELED_PIPELINE

from mmseg_cct.datasets import SemiSegDataset
from mmseg_cct.errors import UserError
from mmseg_cct.preflight.files import build_evaluation_set, check_pairs


def check(labeled, unlabeled=None):
    check_pairs(SemiSegDataset(labeled, unlabeled))


def error_of(tree, **kwargs):
    with pytest.raises(UserError) as caught:
        check(tree.config('labeled', **kwargs), tree.config('unlabeled'))
    return str(caught.value)


def write_mask(tree, ids, name='l1'):
    Image.fromarray(np.asarray(ids)).save(tree.mask(name))


def fill(tree, value, *names, dtype=np.uint8):
    for name in names or ['l1']:
        write_mask(tree, np.full((16, 24), value, dtype), name)


def cut(path, length):
    path.write_bytes(path.read_bytes()[:length])


def write_line(tree):
    write_mask(tree, np.zeros((1, 24), np.uint8))
    Image.fromarray(np.zeros((1, 24, 3), np.uint8)).save(tree.image('l1'))


# what is done to the data, and the file that is named
TABLE = {
    'an unknown id': (lambda tree: fill(tree, 3), 'mask'),
    '16 bits that wrap to a class': (lambda tree: fill(tree, 257, dtype=np.uint16), 'mask'),
    'no mask': (lambda tree: tree.mask('l1').unlink(), 'image'),
    'another size': (lambda tree: write_mask(tree, np.zeros((24, 16), np.uint8)), 'mask'),
    'colours': (lambda tree: write_mask(tree, np.zeros((16, 24, 3), np.uint8)), 'mask'),
    'a side of one pixel': (lambda tree: write_line(tree), 'image'),
    'a damaged image': (lambda tree: cut(tree.image('l1'), 300), 'image'),
}


@pytest.mark.parametrize('name', TABLE)
def test_a_labelled_pair_that_cannot_be_trained_on(tree, name):
    spoil, kind = TABLE[name]
    spoil(tree)
    assert error_of(tree).startswith(str(getattr(tree, kind)('l1')))


def test_all_bad_files_are_named_in_their_order(tree):
    fill(tree, 7, 'l2')
    tree.image('l1').unlink()
    tree.image('u3').write_bytes(b'no image')
    tree.image('u2').unlink()
    files = [tree.image('l1'), tree.mask('l2'), tree.image('u2'), tree.image('u3')]
    lines = error_of(tree).splitlines()
    assert [line.split(':')[0] for line in lines] == list(map(str, files))


def test_ids_are_mapped_first(tree):
    fill(tree, 3)
    check(tree.config('labeled', reduce_zero_label=True))
    fill(tree, 4)
    assert error_of(tree, reduce_zero_label=True).startswith(str(tree.mask('l1')))


def write_masks(tree, *masks):
    for name, ids in zip(tree.labeled_names, masks):
        write_mask(tree, np.resize(np.uint8(ids), (16, 24)), name)


TWO = dict(metainfo=dict(classes=('ground', 'thing')))


@pytest.mark.parametrize(
    ('masks', 'settings', 'refused'),
    [
        (([255], [255], [255]), {}, True),
        (([0, 255], [0], [255]), TWO, True),  # 255 is meant as a class
        (([255], [0, 1, 2], [255]), {}, False),  # some masks of nothing
        (([0, 2, 255], [2], [0]), {}, False),  # a class in none
        (([0, 1, 2], [2], [0]), {}, None),
    ],
)
def test_masks_that_teach_nothing_or_less(tree, messages, masks, settings, refused):
    write_masks(tree, *masks)
    if refused:
        messages.append(error_of(tree, **settings))
    else:
        check(tree.config('labeled', **settings))
    assert [line.split(':')[0] for line in messages] == ['labeled'] * (refused is not None)


KEY = 'val_dataloader.dataset'


def test_all_void(tree):
    write_masks(tree, [255], [255], [255])
    build_evaluation_set(tree.config('labeled'), 'test_dataloader.dataset')
    with pytest.raises(UserError, match=f'^{KEY}: '):
        build_evaluation_set(tree.config('labeled'), KEY)


LOAD, LOAD_MASK, *_, PACK = LABELED_PIPELINE
CROP = dict(type='RandomCrop', crop_size=(8, 8))
RESIZE = dict(type='Resize', scale=(8, 8))
ROTATION = dict(type='RandomRotFlip')


@pytest.mark.parametrize(
    ('pipeline', 'trains', 'validates'),
    [
        ([LOAD, dict(type='PhotoMetricDistortion'), LOAD_MASK, CROP, PACK], True, True),
        ([LOAD, CROP, LOAD_MASK, PACK], False, False),
        ([LOAD, RESIZE, LOAD_MASK, PACK], False, True),  # MMSeg resizes the prediction back
        ([LOAD, LOAD_MASK, ROTATION, PACK], False, True),  # it mixes the ids of masks
    ],
)
def test_a_pipeline_moves_a_mask_with_its_image(tree, pipeline, trains, validates):
    config = tree.config('labeled', pipeline=pipeline)
    checks = (
        ('labeled.pipeline', trains, lambda: check(config)),
        (f'{KEY}: pipeline', validates, lambda: build_evaluation_set(config, KEY)),
    )
    for key, fits, run in checks:
        with nullcontext() if fits else pytest.raises(UserError) as caught:
            run()
        assert fits or caught.value.problems[0].key == key


PAD = dict(type='Pad', size=(30, 40), pad_val=dict(img=0, seg=255))
MARK, PACK_MARKS = dict(type='MarkValidPixels'), dict(type='PackUnlabeledInputs')


def test_loaded_labels_are_packed_as_labels(tree):
    labels = dict(type='LoadPseudoLabels', image_dir=str(tree.root / 'images'), label_dir='x')
    config = tree.config('unlabeled', pipeline=[LOAD, labels, PACK_MARKS])
    with pytest.raises(UserError) as caught:
        check(tree.config('labeled'), config)
    assert caught.value.problems[0].key == 'unlabeled.pipeline'


@pytest.mark.parametrize(
    ('steps', 'is_told'),
    [([PAD, PACK], True), ([MARK, PAD, PACK_MARKS], False), ([CROP, PACK], False)],
)
def test_filling_without_marking_is_told(tree, messages, steps, is_told):
    check(tree.config('labeled'), tree.config('unlabeled', pipeline=[LOAD, *steps]))
    assert [line.split(':')[0] for line in messages] == ['unlabeled.pipeline'] * is_told


@pytest.mark.parametrize(
    ('step', 'key'),
    [
        (dict(type='RandomRotate', prob=1.0, degree=9), 'seg_pad_val'),
        (dict(type='RandomCutOut', prob=1.0, n_holes=1, cutout_shape=(4, 4)), 'seg_fill_in'),
        (dict(type='Pad', size=(30, 40)), 'pad_val'),
    ],
)
def test_a_transform_that_fills_masks_with_a_class_is_told(tree, messages, step, key):
    for value in (255, 1):
        filled = dict(step, **{key: dict(img=0, seg=value) if key == 'pad_val' else value})
        check(tree.config('labeled', pipeline=[LOAD, LOAD_MASK, filled, PACK]))
        assert [line.split(':')[0] for line in messages] == ['labeled.pipeline'] * (value == 1)


def test_a_set_that_is_not_there(tree):
    with pytest.raises(UserError, match=f'^{KEY}: .*none'):
        build_evaluation_set(tree.config('labeled', data_prefix=dict(img_path='none')), KEY)
