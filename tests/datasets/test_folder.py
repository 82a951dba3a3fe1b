import re

import cv2
import numpy as np
import pytest

from mmseg_cct.datasets import FolderDataset, PairDraw, SemiSegDataset
from mmseg_cct.errors import UserError

CLASSES = ['ground', 'thing']
PIPELINE = [
    dict(type='LoadImageFromFile'),
    dict(type='LoadAnnotations'),
    dict(type='PackSegInputs'),
]


@pytest.fixture
def root(tmp_path):
    """Images a, b, sub/c of different formats; masks for b and sub/c."""
    image, mask = np.zeros((5, 7, 3), np.uint8), np.ones((5, 7), np.uint8)
    for name in ('a.jpg', 'b.PNG', 'sub/c.d.bmp'):
        (tmp_path / 'photos' / name).parent.mkdir(parents=True, exist_ok=True)
        cv2.imwrite(str(tmp_path / 'photos' / name), image)
    for name in ('b.png', 'sub/c.d.png'):
        (tmp_path / 'labels' / name).parent.mkdir(parents=True, exist_ok=True)
        cv2.imwrite(str(tmp_path / 'labels' / name), mask)
    for name, lines in dict(list='sub/c.d\nb.PNG\n', missing='b\nz\n', bare='b\na\n').items():
        (tmp_path / f'{name}.txt').write_text(lines)
    return tmp_path


def _build(root, **kwargs):
    options = dict(image_dir='photos', mask_dir='labels', classes=CLASSES, data_root=str(root))
    return FolderDataset(**{**options, **kwargs})


def _files(dataset):
    infos = [dataset.get_data_info(index) for index in range(len(dataset))]
    return [(info['img_path'], info.get('seg_map_path')) for info in infos]


def _expected(root, *names):
    masks = {'b.PNG': 'b.png', 'sub/c.d.bmp': 'sub/c.d.png'}
    return [
        (str(root / 'photos' / name), str(root / 'labels' / masks[name]) if name in masks else None)
        for name in names
    ]


@pytest.mark.parametrize(
    ('options', 'names'),
    [
        ({}, ['a.jpg', 'b.PNG', 'sub/c.d.bmp']),
        (dict(subset='labeled'), ['b.PNG', 'sub/c.d.bmp']),
        (dict(subset='unlabeled'), ['a.jpg']),
        (dict(ann_file='list.txt'), ['sub/c.d.bmp', 'b.PNG']),
    ],
)
def test_images_of_a_subset_or_a_list(root, options, names):
    assert _files(_build(root, **options)) == _expected(root, *names)


def test_no_masks_at_all(root):
    expected = [(path, None) for path, _ in _files(_build(root))]
    for subset in ('unlabeled', 'all'):
        assert _files(_build(root, mask_dir=None, subset=subset)) == expected


def test_listed_image_may_be_unlabeled_in_spite_of_its_mask(root):
    (root / 'list.txt').write_text('b\n')
    dataset = _build(root, ann_file='list.txt', subset='unlabeled')
    assert _files(dataset) == [(str(root / 'photos' / 'b.PNG'), None)]


def test_a_suffix_of_all_masks_is_named(root):
    for name in ('b', 'sub/c.d'):
        mask = root / 'labels' / f'{name}.png'
        mask.rename(mask.with_name(f'{mask.stem}_mask.png'))
    with pytest.raises(
        UserError, match=r"labels: no mask has an image .*mask_suffix='_mask\.png'$"
    ):
        _files(_build(root, subset='labeled'))


@pytest.mark.parametrize('suffix', ['.png', '_mask.png'])
def test_a_mask_of_another_format_is_named(root, suffix):
    other = root / 'labels' / f'b{suffix}'.replace('png', 'TIF')
    (root / 'labels/b.png').rename(other)
    (root / 'labels/sub/c.d.png').rename(root / 'labels/sub' / f'c.d{suffix}')
    with pytest.raises(UserError, match=f'{re.escape(str(other))}: a mask of another suffix'):
        _build(root, subset='unlabeled', mask_suffix=suffix)


def test_mask_suffix(root):
    (root / 'labels' / 'b.png').rename(root / 'labels' / 'b_mask.png')
    dataset = _build(root, subset='labeled', mask_suffix='_mask.png')
    assert _files(dataset) == [
        (str(root / 'photos' / 'b.PNG'), str(root / 'labels' / 'b_mask.png'))
    ]


def test_trains_as_a_pair(root):
    config = dict(type='FolderDataset', image_dir='photos', mask_dir='labels', data_root=str(root))
    config['classes'] = CLASSES
    dataset = SemiSegDataset(
        dict(config, subset='labeled', pipeline=PIPELINE),
        dict(config, subset='unlabeled', pipeline=[PIPELINE[0], PIPELINE[2]]),
    )
    item = dataset[PairDraw(1, 0, 0, 0)]
    assert item['data_samples']['labeled'].gt_sem_seg.data.unique().tolist() == [1]
    assert item['data_samples']['unlabeled'].classes == ('ground', 'thing')


@pytest.mark.parametrize(
    ('label', 'reduced', 'expected'),
    [(200, False, [0, 1, 255]), (200, True, [0, 255]), (1000, False, [0, 1, 255])],
)
def test_another_ignored_label_is_loaded_as_255(root, label, reduced, expected):
    ids = np.tile(np.array([0, 1, label], np.uint16 if label > 255 else np.uint8), (8, 4))
    cv2.imwrite(str(root / 'labels' / 'b.png'), ids)
    dataset = _build(
        root,
        subset='labeled',
        ignore_index=label,
        reduce_zero_label=reduced,
        pipeline=[dict(type='LoadAnnotations')],
    )
    assert np.unique(dataset[0]['gt_seg_map']).tolist() == expected


def test_unlabeled_needs_no_classes(root):
    assert len(_build(root, subset='unlabeled', classes=())) == 1


def test_colours(root):
    palette = [[1, 2, 3], [4, 5, 6]]
    assert _build(root, palette=palette).metainfo['palette'] == palette
    assert len(_build(root).metainfo['palette']) == 2


def test_mask_without_image_is_named(root, messages):
    (root / 'photos' / 'b.PNG').unlink()
    assert len(_build(root, subset='labeled')) == 1
    assert messages == [
        f'{root}/labels/b.png: a mask without an image in {root}/photos (1 in all); left out'
    ]


@pytest.mark.parametrize(
    ('options', 'message'),
    [
        (dict(subset='test'), r"FolderDataset\.subset: 'test'; expected one of labeled, unlabeled"),
        (dict(classes=()), r'FolderDataset\.classes=\(\): expected the class names'),
        (dict(classes=['a', 'b', 'a']), r"classes=\('a', 'b', 'a'\): expected every name once"),
        (dict(ignore_index=1), r'ignore_index=1: class thing would never be learned, as'),
        (dict(ignore_index=-32768), r'ignore_index=-32768: class ground would never be learned'),
        (dict(palette=[[0, 0, 0]]), r'FolderDataset\.palette: 1 colours; expected 2, one for each'),
        (dict(image_dir='nowhere'), 'nowhere: no such folder; expected a folder of images'),
        (dict(mask_dir='nowhere'), r'nowhere: no such folder; expected the masks \(FolderDataset'),
        (
            dict(mask_dir='photos'),
            r'mask_dir: .*photos is or lies in image_dir .*; expected a folder b',
        ),
        (dict(mask_dir='photos/sub'), r'photos/sub is or lies in image_dir .*photos, so that'),
        (dict(mask_dir='photos', ann_file='list.txt'), 'photos is or lies in image_dir'),
        (dict(ann_file='missing.txt'), r'missing\.txt: no image z in .*photos; expected one'),
        (
            dict(ann_file='bare.txt', subset='labeled'),
            r'a\.jpg: no mask for this image of .*/labels/a\.png',
        ),
        (
            dict(ann_file='bare.txt', subset='labeled', mask_dir=None),
            r'b\.PNG: no mask for this image of .*expected FolderDataset\.mask_dir/b\.png',
        ),
        (dict(ann_file='no.txt'), r'no\.txt: no such file; expected a text file'),
        (dict(mask_dir=None, subset='labeled'), "no image belongs to subset 'labeled'; expected"),
        (
            dict(mask_suffix='.tif', subset='labeled'),
            r'b\.png: a mask of another suffix than \.tif, so .*; expected b\.tif',
        ),
    ],
)
def test_mistakes(root, options, message):
    with pytest.raises(UserError, match=message) as caught:
        _build(root, **options)
    assert '\n' not in str(caught.value)


def test_every_image_has_a_mask(root):
    (root / 'photos' / 'a.jpg').unlink()
    with pytest.raises(UserError, match="no image belongs to subset 'unlabeled'; expected images"):
        _build(root, subset='unlabeled')


def test_the_case_of_a_suffix_does_not_count(root):
    before = dict(_files(_build(root, subset='labeled')))
    for path in list((root / 'labels').rglob('*.png')):
        path.rename(path.with_suffix('.PNG'))
    after = dict(_files(_build(root, subset='labeled')))
    assert after == {image: mask[:-4] + '.PNG' for image, mask in before.items()}
