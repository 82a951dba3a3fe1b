import numpy as np
import pytest
from folders import save

from mmseg_cct.datasets import FolderDataset
from mmseg_cct.errors import UserError

CLASSES = ['ground', 'thing']


@pytest.fixture
def root(tmp_path):
    """Images a, b, sub/c.d of different formats; masks for b and sub/c.d, in either case."""
    for name in ('photos/a.jpg', 'photos/b.PNG', 'photos/sub/c.d.bmp'):
        save(tmp_path / name, np.zeros((5, 7, 3), np.uint8))
    for name in ('labels/b.png', 'labels/sub/c.d.PNG'):
        save(tmp_path / name, np.ones((5, 7), np.uint8))
    lists = dict(list='sub/c.d\nb.PNG\n', missing='b\nz\n', bare='b\na\n', a='a', b='b\n')
    for name, lines in lists.items():
        (tmp_path / f'{name}.txt').write_text(lines)
    return tmp_path


def _build(root, **kwargs):
    options = dict(image_dir='photos', mask_dir='labels', classes=CLASSES, data_root=str(root))
    return FolderDataset(**{**options, **kwargs})


def _files(dataset):
    infos = [dataset.get_data_info(index) for index in range(len(dataset))]
    return [(info['img_path'], info.get('seg_map_path')) for info in infos]


A, B, C = ('a.jpg', None), ('b.PNG', 'b.png'), ('sub/c.d.bmp', 'sub/c.d.PNG')


def _bare(*files):
    return [(image, None) for image, _ in files]


def _expected(root, files):
    return [(f'{root}/photos/{image}', mask and f'{root}/labels/{mask}') for image, mask in files]


@pytest.mark.parametrize(
    ('options', 'files'),
    [
        ({}, [A, B, C]),
        (dict(subset='labeled'), [B, C]),
        (dict(subset='unlabeled', classes=()), [A]),
        (dict(ann_file='list.txt'), [C, B]),
        (dict(ann_file='b.txt', subset='unlabeled'), _bare(B)),  # in spite of its mask
        (dict(subset='unlabeled', partly_labeled='b.txt'), _bare(A, B)),
        (dict(subset='unlabeled', partly_labeled='bare.txt', exclude='b.txt'), _bare(A)),
        (dict(subset='unlabeled', partly_labeled='b.txt', ann_file='a.txt'), _bare(A, B)),
        (dict(mask_dir=None), _bare(A, B, C)),
        (dict(mask_dir=None, subset='unlabeled'), _bare(A, B, C)),
    ],
)
def test_images_of_a_subset_or_a_list(root, options, files):
    assert _files(_build(root, **options)) == _expected(root, files)


@pytest.mark.parametrize(
    ('label', 'reduced', 'expected'),
    [(200, False, [0, 1, 255]), (200, True, [0, 255])],
)
def test_another_ignored_label_is_loaded_as_255(root, label, reduced, expected):
    save(root / 'labels/b.png', np.tile(np.uint8([0, 1, label]), (8, 4)))
    options = dict(subset='labeled', ignore_index=label, reduce_zero_label=reduced)
    dataset = _build(root, **options, pipeline=[dict(type='LoadAnnotations')])
    assert np.unique(dataset[0]['gt_seg_map']).tolist() == expected


def test_mask_without_image_is_named(root, messages):
    (root / 'photos' / 'b.PNG').unlink()
    assert len(_build(root, subset='labeled')) == 1
    expected = f'labels/b.png: a mask without an image in {root}/photos (1 in all); left out'
    assert messages == [f'{root}/{expected}']


LISTED = dict(ann_file='bare.txt', subset='labeled')


@pytest.mark.parametrize(
    ('options', 'key'),
    [
        (dict(subset='test'), "FolderDataset.subset='test'"),
        (dict(classes=()), 'FolderDataset.classes=()'),
        (dict(classes=('a', 'b\a')), r"FolderDataset.classes=('a', 'b\x07')"),
        (dict(ignore_index=1), 'FolderDataset.ignore_index=1'),
        (dict(ignore_index=256), 'FolderDataset.ignore_index=256'),
        (dict(image_dir='nowhere'), '{root}/nowhere'),
        (dict(mask_dir='nowhere'), '{root}/nowhere'),
        (dict(mask_dir='photos/sub'), 'FolderDataset.mask_dir'),
        (dict(mask_dir='photos', ann_file='list.txt'), 'FolderDataset.mask_dir'),
        (dict(ann_file='missing.txt'), '{root}/missing.txt'),
        (LISTED, '{root}/photos/a.jpg'),
        (dict(LISTED, mask_dir=None), '{root}/photos/b.PNG'),
        (dict(mask_dir=None, subset='labeled'), '{root}/photos'),
        (dict(exclude='a.txt', subset='unlabeled'), '{root}/photos'),
        (dict(mask_suffix='.tif'), '{root}/labels/b.png'),
    ],
)
def test_mistakes(root, options, key):
    with pytest.raises(UserError) as caught:
        _build(root, **options)
    assert [str(problem.key) for problem in caught.value.problems] == [key.format(root=root)]
    assert '\n' not in str(caught.value)
