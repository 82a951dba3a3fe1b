import torch
from torch import nn

from mmseg_cct.models import ConcatNeck


def test_a_linear_head_in_two_factors():
    torch.manual_seed(0)
    neck, classifier = ConcatNeck((3, 5), channels=8), nn.Conv2d(8, 4, 1)
    maps = [torch.randn(2, channels, 6, 4) for channels in (3, 5)]
    (z,) = neck(maps)
    joined = torch.cat(maps, 1)
    mean = joined.mean((0, 2, 3), keepdim=True)
    variance = joined.var((0, 2, 3), keepdim=True, unbiased=False)
    normalised = (joined - mean) / (variance + 1e-5) ** 0.5
    weight = classifier.weight[:, :, 0, 0] @ neck.project.weight[:, :, 0, 0]
    bias = classifier.weight[:, :, 0, 0] @ neck.project.bias + classifier.bias
    expected = torch.einsum('cd,ndhw->nchw', weight, normalised) + bias[:, None, None]
    assert torch.allclose(classifier(z), expected, atol=1e-5)
