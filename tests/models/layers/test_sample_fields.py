import pytest
import torch
from mmengine.structures import PixelData
from mmseg.structures import SegDataSample

from mmseg_cct.models.layers.sample_fields import stack_field

N, H, W = 2, 5, 6


@pytest.fixture
def valid():
    mask = torch.zeros(N, 1, H, W, dtype=torch.bool)
    mask[0, :, :3, :4] = mask[1, :, :, :2] = True
    return mask


def samples_with(name, values):
    return [SegDataSample(**{name: PixelData(data=value)}) for value in values]


def test_a_field_is_stacked_at_the_size_of_the_prediction(valid):
    samples = samples_with('valid_mask', valid)
    assert torch.equal(stack_field(samples, 'valid_mask', (H, W)), valid)
    doubled = stack_field(samples, 'valid_mask', (2 * H, 2 * W))
    assert torch.equal(doubled, valid.repeat_interleave(2, 2).repeat_interleave(2, 3))
    assert doubled.dtype == torch.bool


def test_a_smaller_prediction_takes_the_pixel_at_the_centre():
    labels = torch.arange(N * 9 * 6).view(N, 1, 9, 6)
    thirds = stack_field(samples_with('pseudo_sem_seg', labels), 'pseudo_sem_seg', (3, 2))
    assert torch.equal(thirds, labels[..., 1::3, 1::3])


def test_samples_without_the_field_give_none(valid):
    samples = samples_with('valid_mask', valid)
    assert stack_field([SegDataSample(), samples[0]], 'valid_mask', (H, W)) is None
    assert stack_field(samples, 'pseudo_sem_seg', (H, W)) is None
    assert stack_field([], 'valid_mask', (H, W)) is None
