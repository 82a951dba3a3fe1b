import re
from types import SimpleNamespace

import numpy as np
import pytest
from mmengine.structures import PixelData
from mmseg.structures import SegDataSample
from torch import from_numpy, zeros

from mmseg_cct.preflight.small_objects import describe_small_objects


class Set(list):
    metainfo = dict(classes=('background', 'dot', 'disc'))


def images_of(width, input_width):
    """Twenty images whose dot is 5 pixels wide and whose disc is 40."""
    truth = np.zeros((80, width), np.uint8)
    truth[2:7, 2:7] = 1
    truth[30:70, 30:70] = 2
    sample = SegDataSample(gt_sem_seg=PixelData(data=from_numpy(truth)[None]))
    return Set([dict(inputs=zeros(3, 8, input_width), data_samples=sample)] * 20)


@pytest.mark.parametrize(
    ('input_width', 'stride', 'expected'),
    [
        (50, 0, r'in pixels: dot 1\.2; below 2 they vanish; crops .* in about 16 times the time'),
        (160, 0, None),
        (160, 8, r'in pixels: dot 4\.0; narrower than 8, the stride of the network; a larger size'),
        (160, 4, None),
    ],
)
def test_objects_that_are_small_for_the_network_are_named(input_width, stride, expected):
    model = SimpleNamespace(decode_head=SimpleNamespace(stride=stride))
    line = describe_small_objects(images_of(200, input_width), model)
    assert line is None if expected is None else re.search(expected, line)


def test_images_without_masks_tell_nothing():
    assert describe_small_objects(Set([dict(inputs=zeros(3, 8, 8))]), None) is None
