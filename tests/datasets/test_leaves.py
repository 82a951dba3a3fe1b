from pathlib import Path

from mmengine.dataset import ConcatDataset, RepeatDataset
from mmseg.registry import DATASETS

from mmseg_cct.datasets.leaves import (
    data_folders,
    image_loader,
    image_paths,
    leaf_datasets,
    transforms_of,
)


def test_the_ways_to_name_a_folder():
    config = [
        dict(data_root='r', data_prefix=dict(img_path='i', seg_map_path='/m')),
        dict(data_prefix='p', ann_file='x'),
        dict(data_root='alone', data_prefix=dict(img_path='')),
        dict(deep=[dict(data_root='s', image_dir='i', mask_dir=None)]),
        dict(data_root=None, data_prefix=None),
        'data_root',
    ]
    expected = {'r/i', '/m', 'p', 'alone', 's/i'}
    assert data_folders(config) == set(map(Path, expected))


def test_wrappers_are_taken_off(tree):
    config = tree.config('labeled')
    choice = dict(type='RandomChoice', transforms=[[dict(type='RandomFlip', prob=0.5)]])
    config['pipeline'] = [*config['pipeline'][:2], choice, config['pipeline'][-1]]
    one, two = (DATASETS.build(config) for _ in range(2))
    wrapped = ConcatDataset([one, two])
    assert leaf_datasets(wrapped) == [one, two]
    assert leaf_datasets(RepeatDataset(one, 3)) == [one]
    names = [str(tree.image(name)) for name in tree.labeled_names]
    assert list(image_paths(wrapped)) == 2 * names
    # transforms that hold others stand before these
    kinds = [type(transform).__name__ for transform in transforms_of(one)]
    assert kinds.index('RandomChoice') < kinds.index('RandomFlip')
    assert type(image_loader(one)).__name__ == 'LoadImageFromFile'
