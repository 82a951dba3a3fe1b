import pytest
import torch
import torch.nn.functional as F
from plain import conv_chain

from mmseg_cct.models.layers.chunking import split_positions
from mmseg_cct.models.layers.subpixel import (
    from_subpixel_layout,
    icnr_,
    level_channels,
    num_levels,
    subpixel_chunks,
    to_subpixel_layout,
)

N, C, H, W = 2, 3, 3, 4


def test_the_levels_are_the_logarithm_of_the_stride():
    assert [num_levels(stride) for stride in (1, 2, 4, 8, 16, 32)] == [0, 1, 2, 3, 4, 5]


@pytest.mark.parametrize('stride', [1, 2, 8])
def test_layout_round_trip(stride):
    image = torch.arange(N * C * H * W * stride**2).view(N, C, H * stride, W * stride)
    layout = to_subpixel_layout(image, stride)
    assert layout.shape == (C, min(4, stride**2), max(stride**2 // 4, 1), N, H * W)
    assert torch.equal(from_subpixel_layout(layout, (N, H, W), stride), image)
    # one feature position holds exactly its s×s pixels
    n, y, x = 1, 2, 3
    block = image[n, 1, y * stride : (y + 1) * stride, x * stride : (x + 1) * stride]
    assert sorted(layout[1, ..., n, y * W + x].flatten()) == sorted(block.flatten())


@pytest.mark.parametrize('kernel_init', ['kaiming', 'identity'])
@pytest.mark.parametrize(('shape', 'bias_shape'), [((12, 3, 1, 1), (12,)), ((5, 12, 3), (5, 12))])
def test_icnr_starts_as_nearest_neighbour_upsampling(shape, bias_shape, kernel_init):
    torch.manual_seed(0)
    weight, bias, scores = torch.zeros(shape), torch.ones(bias_shape), torch.randn(1, 3, 4, 5)
    icnr_(weight, bias, kernel_init)
    rows, offsets = weight.reshape(-1, 12, 3), bias.reshape(-1, 12)
    for row, offset in zip(rows, offsets):
        up = conv_chain(scores, [row[..., None, None]], [offset], False)
        nearest = F.interpolate(up[..., ::2, ::2], scale_factor=2, mode='nearest')
        assert torch.equal(up, nearest)
        if kernel_init == 'identity':  # each class as itself
            assert torch.equal(up, F.interpolate(scores, scale_factor=2, mode='nearest'))
    if kernel_init == 'kaiming':
        assert len(rows.flatten(0, 1).unique(dim=0)) == 3 * len(rows)  # each decoder its own


@pytest.mark.parametrize('positions', [None, [6, 1, 3]])
@pytest.mark.parametrize('stride', [1, 4])
def test_chunks_are_cuts_of_the_whole_layout(positions, stride):
    pixels = torch.randn(3, 2, 2 * stride, 4 * stride)
    whole = to_subpixel_layout(pixels, stride)
    if positions is not None:
        positions = torch.tensor(positions)
        whole = whole[..., positions]
    for size in (1, 3, 8, 12, 64):  # parts of a row, rows, an image, several, all
        expected = [part.flatten(-2) for part in split_positions(whole.flatten(-2), size)]
        chunks = list(subpixel_chunks(pixels, stride, size, positions))
        assert len(chunks) == len(expected) and all(map(torch.equal, chunks, expected))


@pytest.mark.parametrize(
    ('stride', 'num_classes', 'levels'),
    [(4, 3, [(3, 3), (3, 3)]), (4, 500, [(64, 64), (64, 500)]), (1, 500, [])],
)
def test_hundreds_of_classes_get_no_more_than_64_channels(stride, num_classes, levels):
    assert level_channels(stride, num_classes, None) == levels
