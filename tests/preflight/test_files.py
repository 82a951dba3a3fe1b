"""What is said of images, masks and labels before a training reads them."""

import re
from contextlib import nullcontext

import cv2
import numpy as np
import pytest
from mmseg.registry import DATASETS
from PIL import Image
from trees import LABELED_PIPELINE

from mmseg_cct.datasets import SemiSegDataset
from mmseg_cct.datasets.files.images import ORIENTATION
from mmseg_cct.errors import UserError
from mmseg_cct.preflight.files import (
    build_evaluation_set,
    check_pairs,
    look_at_evaluation_data,
)

VOID = 'expected 0 to 2, or 255 where ignored'


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


def every_id(tree):
    write_mask(tree, np.arange(16 * 24).reshape(16, 24).astype(np.uint8))


# what is done to the data, the file that is named, and what is said
TABLE = {
    'ids': (every_id, 'mask', f'label id 3, 4, 5, 6, 7 and more outside the classes; {VOID}'),
    '16 bits that wrap to a class': (
        lambda tree: fill(tree, 257, dtype=np.uint16), 'mask', 'label id 257 outside the classes',
    ),
    'no mask': (lambda tree: tree.mask('l1').unlink(), 'image', 'no mask for this labelled image;'),
    'another size': (
        lambda tree: write_mask(tree, np.zeros((24, 16), np.uint8)),
        'mask', '16×24 pixels; expected 24×16, the size of its image',
    ),
    'colours': (
        lambda tree: write_mask(tree, np.zeros((16, 24, 3), np.uint8)),
        'mask', 'a mask of Pillow mode RGB; expected',
    ),
    'a damaged image': (lambda tree: cut(tree.image('l1'), 300), 'image', r'cannot be read \('),
    'a damaged mask': (lambda tree: cut(tree.mask('l1'), 60), 'mask', r'cannot be read \('),
}  # fmt: skip


@pytest.mark.parametrize('name', TABLE)
def test_a_labelled_pair_that_cannot_be_trained_on(tree, name):
    spoil, kind, expected = TABLE[name]
    spoil(tree)
    place = re.escape(str(getattr(tree, kind)('l1')))
    assert re.match(f'{place}:? ?{expected}', error_of(tree))


def test_all_bad_files_are_named_in_their_order(tree):
    fill(tree, 7, 'l2')
    tree.image('l1').unlink()
    tree.image('u3').write_bytes(b'no image')
    tree.image('u2').unlink()
    files = [tree.image('l1'), tree.mask('l2'), tree.image('u2'), tree.image('u3')]
    lines = error_of(tree).splitlines()
    assert [line.split(':')[0] for line in lines] == list(map(str, files))
    assert ': no such file' in lines[2] and ': cannot be read' in lines[3]


def test_ids_are_mapped_first(tree):
    fill(tree, 3)
    check(tree.config('labeled', reduce_zero_label=True))
    fill(tree, 4)
    assert error_of(tree, reduce_zero_label=True).endswith(
        f'{VOID}, after label_map or reduce_zero_label'
    )


def test_a_mask_is_read_as_the_pipeline_reads_it(tree):
    fill(tree, 0, dtype=bool)
    fill(tree, 1, 'l2', dtype=bool)
    check(tree.config('labeled'))
    load = [dict(type='LoadImageFromFile'), dict(type='LoadAnnotations', imdecode_backend='cv2')]
    expected = f"{tree.mask('l2')}: imdecode_backend='cv2' reads other ids"
    assert error_of(tree, pipeline=load).startswith(expected)


def turn(tree, name, tag, size=None):
    exif = Image.Exif()
    exif[ORIENTATION] = tag
    with Image.open(tree.image(name)) as image:
        image.resize(size or image.size).save(tree.image(name), exif=exif)


def test_an_image_is_turned_by_its_exif_tag(tree):
    turn(tree, 'l1', 6)
    assert cv2.imread(str(tree.image('l1'))).shape == (24, 16, 3)
    assert 'pixels; expected 16×24, the size of its image' in error_of(tree)
    write_mask(tree, np.zeros((24, 16), np.uint8))
    check(tree.config('labeled'))


@pytest.mark.parametrize('tag', [1, 3, 6])
def test_images_that_loading_may_turn_away_from_their_masks(tree, messages, tag):
    for name in ('l1', 'l2'):
        turn(tree, name, tag, (16, 16))
        write_mask(tree, np.resize(np.uint8([0, 1, 2]), (16, 16)), name)
    line = (
        f'2 images are turned by their EXIF tags, and their sizes do not tell whether their '
        f'masks are; the first is {tree.image("l1")}; expected masks of the turned images'
    )
    check(tree.config('labeled'))
    assert messages == ([] if tag == 1 else [f'labeled: {line}'])
    as_it_is = dict(type='LoadImageFromFile', color_type='color_ignore_orientation')
    for load in (dict(type='LoadImageFromFile'), as_it_is):
        config = tree.config('labeled', pipeline=[load, *LABELED_PIPELINE[1:]])
        look_at_evaluation_data(DATASETS.build(config), 'val')
    assert messages[1:] == ([] if tag == 1 else [f'val: {line}'])


def test_a_mask_that_is_loaded_after_its_image_moved(tree):
    load, load_mask, _, moving, *_ = LABELED_PIPELINE
    colours = dict(type='PhotoMetricDistortion')
    check(tree.config('labeled', pipeline=[load, colours, load_mask, moving]))
    found = error_of(tree, pipeline=[load, moving, load_mask])
    assert found.startswith('labeled.pipeline: RandomCrop before LoadAnnotations')


def write_masks(tree, *masks):
    for name, ids in zip(tree.labeled_names, masks):
        write_mask(tree, np.resize(np.uint8(ids), (16, 24)), name)


TWO = dict(metainfo=dict(classes=('ground', 'thing')))
ALONE = 'the 3 masks hold 0 and 255 alone, and 255 is ignored, so that'


@pytest.mark.parametrize(
    ('masks', 'settings', 'refused', 'expected'),
    [
        (([255], [255], [255]), {}, True, 'all 3 masks hold only 255 (ignored); expected class'),
        (
            ([0, 255], [0], [255]), TWO, True,
            f'{ALONE} thing never occurs; expected 0 for ground and 1 for thing (replace 255 by 1)',
        ),
        (([255], [0, 1, 2], [255]), {}, False, '2 of 3 masks are 255 (ignored) alone; expected'),
        (([0, 2, 255], [2], [0]), {}, False, 'thing (1 of 3 classes) in none of the 3 masks;'),
    ],
)  # fmt: skip
def test_masks_that_teach_nothing_or_less(tree, messages, masks, settings, refused, expected):
    check(tree.config('labeled'))
    assert messages == []
    write_masks(tree, *masks)
    if refused:
        said = error_of(tree, **settings)
    else:
        check(tree.config('labeled', **settings))
        said = messages[0]
    assert said.startswith(f'labeled: {expected}')


KEY = 'val_dataloader.dataset'


def test_all_void(tree):
    write_masks(tree, [255], [255], [255])
    build_evaluation_set(tree.config('labeled'), 'test_dataloader.dataset')
    with pytest.raises(UserError, match=f'^{KEY}: all 3 masks hold only ignored pixels'):
        build_evaluation_set(tree.config('labeled'), KEY)
    write_masks(tree, [255, 0])
    assert len(build_evaluation_set(tree.config('labeled'), KEY)) == 3


def test_a_crop_before_the_mask(tree):
    load, annotate, *_, pack = LABELED_PIPELINE
    for step, fits in (('RandomCrop', False), ('Resize', True)):
        size = dict(crop_size=(8, 8)) if step == 'RandomCrop' else dict(scale=(8, 8))
        pipeline = [load, dict(type=step, **size), annotate, pack]
        with nullcontext() if fits else pytest.raises(UserError, match='RandomCrop moves the'):
            build_evaluation_set(tree.config('labeled', pipeline=pipeline), KEY)


def test_a_set_that_is_not_there(tree):
    with pytest.raises(UserError, match=f'^{KEY}: .*none'):
        build_evaluation_set(tree.config('labeled', data_prefix=dict(img_path='none')), KEY)
