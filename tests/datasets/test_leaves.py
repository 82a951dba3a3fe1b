from mmengine.dataset import ConcatDataset, RepeatDataset
from mmseg.registry import DATASETS

from mmseg_cct.datasets.leaves import image_loader, image_paths, leaf_datasets, transforms_of


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
