import io

import pytest
import torch
import torch.nn.functional as F
from mmseg.registry import MODELS
from torch import nn

from mmseg_cct.apis.export import AveragePool
from mmseg_cct.models import ConcatNeck
from mmseg_cct.models.necks.psp_neck import _interpolate

B, D, H, W = 8, 4, 7, 9


def make_neck(**kwargs):
    torch.manual_seed(0)
    return MODELS.build(dict(dict(type='PSPNeck', in_channels=B, channels=D), **kwargs))


def naive(neck, x, pool_scales):
    """Pyramid pooling in training mode, from the neck's own weights."""
    convs = [m for m in neck.modules() if isinstance(m, torch.nn.Conv2d)]
    branches = [x]
    for side, conv in zip(pool_scales, convs):
        pooled = torch.zeros(*x.shape[:2], side, side)
        for i in range(side):
            for j in range(side):
                # floor of the start, ceiling of the end, as adaptive pooling is defined
                rows = slice(i * H // side, -(-(i + 1) * H // side))
                columns = slice(j * W // side, -(-(j + 1) * W // side))
                pooled[..., i, j] = x[..., rows, columns].mean((2, 3))
        y = normalise(F.conv2d(pooled, conv.weight)).relu()
        branches.append(F.interpolate(y, (H, W), mode='bilinear', align_corners=False))
    return normalise(F.conv2d(torch.cat(branches, 1), convs[-1].weight, padding=1)).relu()


def normalise(x):
    mean = x.mean((0, 2, 3), keepdim=True)
    return (x - mean) / (x.var((0, 2, 3), keepdim=True, unbiased=False) + 1e-5).sqrt()


@pytest.mark.parametrize('options', [dict(), dict(pool_scales=(2, 4), in_index=1)])
def test_is_pyramid_pooling(options):
    neck, x = make_neck(**options), torch.randn(3, B, H, W)
    assert all(m.bias is None for m in neck.modules() if isinstance(m, torch.nn.Conv2d))
    (z,) = neck((None, x, None) if options else (None, x))
    pool_scales = options.get('pool_scales', (1, 2, 3, 6))  # by default the paper's
    assert z.shape == (3, D, H, W)
    torch.testing.assert_close(z, naive(neck, x, pool_scales), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize('align_corners', [False, True])
@pytest.mark.parametrize('size', [(1, 1), (6, 2)])
def test_matrices_interpolate_as_torch_does(size, align_corners):
    x = torch.randn(2, 3, *size, requires_grad=True)
    resized = F.interpolate(x, (7, 11), mode='bilinear', align_corners=align_corners)
    product = _interpolate(x, (7, 11), align_corners)
    torch.testing.assert_close(product, resized)
    weight = torch.randn_like(resized)
    gradients = [torch.autograd.grad((y * weight).sum(), x)[0] for y in (product, resized)]
    torch.testing.assert_close(*gradients)


def test_it_is_exported_by_the_tracer_at_a_size_that_the_pooling_does_not_divide(monkeypatch):
    """With the matrices that a GPU takes, and those of `--onnx` for the pooling that ONNX lacks."""
    session = pytest.importorskip('onnxruntime').InferenceSession
    neck, x, file = make_neck().eval(), torch.randn(2, B, H, W), io.BytesIO()
    expected = neck((x,))[0]
    for pool in neck.pyramid:
        pool[0] = AveragePool(pool[0].output_size)
    monkeypatch.setattr(torch.Tensor, 'is_cuda', True)
    torch.onnx.export(neck, ((x,),), file, input_names=['x'], dynamo=False)
    (exported,) = session(file.getvalue()).run(None, {'x': x.numpy()})
    torch.testing.assert_close(torch.from_numpy(exported), expected)


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
