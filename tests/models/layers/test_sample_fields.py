import torch
from mmengine.structures import PixelData
from mmseg.structures import SegDataSample

from mmseg_cct.models.layers.sample_fields import stack_field


def samples_with(name, values):
    return [SegDataSample(**{name: PixelData(data=value)}) for value in values]


def test_a_field_is_stacked_at_the_size_of_the_prediction():
    valid = torch.rand(2, 1, 5, 6) < 0.5
    samples = samples_with('valid_mask', valid)
    assert torch.equal(stack_field(samples, 'valid_mask', (5, 6)), valid)
    doubled = stack_field(samples, 'valid_mask', (10, 12))
    assert torch.equal(doubled, valid.repeat_interleave(2, 2).repeat_interleave(2, 3))
    # a smaller prediction takes the pixel at the centre
    labels = torch.arange(2 * 9 * 6).view(2, 1, 9, 6)
    thirds = stack_field(samples_with('pseudo_sem_seg', labels), 'pseudo_sem_seg', (3, 2))
    assert torch.equal(thirds, labels[..., 1::3, 1::3])
    assert doubled.dtype == torch.bool and thirds.dtype == labels.dtype


def test_unless_all_samples_have_the_field_there_is_none():
    samples = [SegDataSample(), *samples_with('valid_mask', torch.ones(1, 1, 5, 6))]
    assert stack_field(samples, 'valid_mask', (5, 6)) is None
    assert stack_field([], 'valid_mask', (5, 6)) is None
