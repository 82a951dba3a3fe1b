"""Images that would share a prediction file."""

import re
from types import SimpleNamespace

import pytest
import tiny
import torch
from mmseg.evaluation import IoUMetric
from mmseg.registry import MODELS
from mmseg.structures import SegDataSample

from mmseg_cct.errors import UserError, raise_problems
from mmseg_cct.evaluation import MultiDomainIoUMetric
from mmseg_cct.preflight.first_batch import channel_problems, file_name_problems


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


@pytest.mark.parametrize(
    ('head', 'found'),
    [
        (dict(type='FCNHead', in_channels=7, num_convs=1), r'7: expected 6'),
        (dict(type='SegformerHead', in_channels=[7], in_index=[0]), r'\[7\]: expected \[6\]'),
    ],
)
def test_a_head_of_other_channels_is_named(head, found):
    decode_head = dict(head, channels=4, num_classes=3, norm_cfg=dict(type='BN'))
    model = MODELS.build(tiny.model_config(decode_head=decode_head, auxiliary_head=None)).eval()
    batch = dict(inputs=[torch.zeros(3, 32, 32)], data_samples=[SegDataSample()])
    (problem,) = channel_problems(model, batch)
    assert re.match(rf'model\.decode_head\.in_channels={found}, the channels', str(problem))
