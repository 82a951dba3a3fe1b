"""Images that would share a prediction file or a batch."""

import re
from types import SimpleNamespace

import pytest
from mmengine.registry import DefaultScope
from mmseg.evaluation import IoUMetric
from mmseg.registry import DATASETS
from PIL import Image
from torch.utils.data import DataLoader

from mmseg_cct.errors import UserError, raise_problems
from mmseg_cct.evaluation import MultiDomainIoUMetric
from mmseg_cct.preflight.first_batch import (
    batch_problems,
    file_name_problems,
)


def require_own_files(metrics, dataset):
    raise_problems(file_name_problems(metrics, dataset))


class Set(list):
    """Data infos of images."""

    def __init__(self, *images):
        super().__init__(dict(img_path=image) for image in images)

    get_data_info = list.__getitem__


@pytest.mark.parametrize('other', ['b/0.jpg', 'a/0.png'])
def test_two_images_of_one_name_are_refused(other, tmp_path):
    writes, reads = IoUMetric(output_dir=str(tmp_path)), IoUMetric()
    images = Set('a/0.jpg', 'a/1.jpg', other)
    require_own_files([reads], images)
    require_own_files([reads, writes], Set('a/0.jpg', 'b/1.jpg'))
    expected = rf'a/0\.jpg and {other} would both become 0\.png; expected .*predict\.py'
    with pytest.raises(UserError, match=expected):
        require_own_files([reads, writes], images)
    with pytest.raises(UserError, match=expected):  # in two sets that are one after the other
        parts = SimpleNamespace(datasets=[Set('a/0.jpg'), Set(other)])
        require_own_files([writes], parts)


def test_domains_have_folders_of_their_own(tmp_path):
    metric = MultiDomainIoUMetric(output_dir=str(tmp_path))
    domains = dict(x=Set('a/0.jpg'), y=Set('b/0.jpg'))
    require_own_files([metric], SimpleNamespace(domains=domains))
    domains['y'] = Set('b/0.jpg', 'c/0.jpg')
    with pytest.raises(UserError, match=r'b/0\.jpg and c/0\.jpg would both become 0\.png'):
        require_own_files([metric], SimpleNamespace(domains=domains))


def test_drawn_images_have_no_path(tmp_path):
    drawn = Set()
    drawn += [dict(seed=0), dict(seed=1)]
    require_own_files([IoUMetric(output_dir=str(tmp_path))], drawn)


def loader_of(folder, sizes, batch_size):
    for index, (width, height) in enumerate(sizes):
        Image.new('RGB', (width, height)).save(folder / f'{index}.png')
    settings = dict(
        type='mmseg.BaseSegDataset', metainfo=dict(classes=('a', 'b')), img_suffix='.png'
    )
    resize = dict(type='Resize', scale=(32, 32), keep_ratio=True)
    pipeline = [dict(type='LoadImageFromFile'), resize, dict(type='PackSegInputs')]
    with DefaultScope.overwrite_default_scope('mmseg'):
        dataset = DATASETS.build(
            dict(
                **settings,
                data_prefix=dict(img_path=str(folder)),
                pipeline=pipeline,
                test_mode=True,
            )
        )
    return DataLoader(dataset, batch_size)


@pytest.mark.parametrize(
    ('sizes', 'batch_size', 'found'),
    [
        ([(64, 32), (32, 16), (32, 32)], 2, None),  # resized alike, and the last one is alone
        ([(64, 32), (32, 32)], 1, None),
        ([(64, 32), (64, 32), (32, 32), (64, 32)], 2, '2.png of 32×32 and .*3.png of 32×16'),
    ],
)
def test_a_batch_has_one_size(sizes, batch_size, found, tmp_path):
    problems = list(batch_problems(loader_of(tmp_path, sizes, batch_size), 'val_dataloader'))
    if found is None:
        assert problems == []
    else:
        (problem,) = map(str, problems)
        assert re.search(rf'^val_dataloader.batch_size=2: .*{found} in one batch; expec', problem)
