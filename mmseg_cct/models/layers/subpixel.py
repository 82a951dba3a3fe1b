"""Sub-pixel convolutions: their ICNR initialisation and their order of pixels.

A decoder of stride s = 2^L maps each feature position on its own to its s×s pixels. Pixels are
therefore kept in *sub-pixel layout*, `(C, 4, 4^(L-1), P)`: class, sub-pixel of the last level,
sub-pixels of the levels before (last but one first), feature position. In that order a PixelShuffle
is a view.

Shapes: `N` images, `C` classes, `L` levels, `P = N·h·w` feature positions, `H×W = s·h × s·w`.
"""

import math
from collections.abc import Iterator, Sequence

import torch
from torch import Tensor, nn

from mmseg_cct.errors import UserError

from .chunking import fill_up, join


def num_levels(stride: int) -> int:
    """Number of ×2 sub-pixel convolutions of a decoder, log2(stride).

    Raises:
        UserError: If the stride is no power of two.
    """
    if stride < 1 or stride & (stride - 1):
        expected = 'a power of two, as a decoder is made of ×2 sub-pixel convolutions'
        raise UserError(f'stride={stride}', '', expected)
    return stride.bit_length() - 1


def require_stride(
    key: str, stride: int, predicted: Sequence[int], expected: Sequence[int], name: str = 'inputs'
) -> None:
    """Checks that predictions have the size `(H, W)` of what a decoder predicts, called `name`.

    A backbone may round the size of its output up or down, by less than a position.

    Raises:
        UserError: If a side is off by a feature position or more; it names the stride that fits.
    """
    if any(abs(a - b) >= stride for a, b in zip(predicted, expected)):
        predictions = f'predictions of {predicted[0]}×{predicted[1]}'
        problem = f'{predictions} for {name} of {expected[0]}×{expected[1]}'
        right = f'the stride of the features, {stride * expected[0] / predicted[0]:.0f}'
        raise UserError(f'{key}.stride={stride}', problem, right)


@torch.no_grad()
def icnr_(weight: Tensor, bias: Tensor, kernel_init: str = 'identity') -> None:
    """Initialises a sub-pixel convolution as nearest-neighbour upsampling (ICNR), in place.

    `weight` is `(..., 4C, B)` or `(4C, B, 1, 1)`, `bias` `(..., 4C)`. `kernel_init` is `'kaiming'`,
    a normal kernel and uniform biases, or `'identity'`, with zero biases.

    The four rows of the sub-pixels of an output channel start equal, which avoids checkerboard
    artefacts. With a random kernel each upsampled class is a random mix of all classes, some of
    which the ReLU cuts off; with the identity each class keeps its own score. Where a level changes
    the number of channels, `B` to `C`, the identity gives way to a normal kernel that keeps the
    variance.

    Raises:
        UserError: If `kernel_init` is neither.
    """
    if kernel_init not in ('kaiming', 'identity'):
        raise UserError(f'kernel_init={kernel_init!r}', '', 'kaiming or identity')
    rows = weight.flatten(1) if weight.dim() == 4 else weight
    rows = rows.view(-1, *rows.shape[-2:])
    # one decoder after the other, so that each draws its own kernel
    for row_block, bias_block in zip(rows, bias.view(-1, bias.shape[-1])):
        out_channels, in_channels = len(row_block) // 4, row_block.shape[1]
        kernel = torch.eye(out_channels, in_channels)
        offset = torch.zeros(out_channels)
        if kernel_init == 'kaiming':
            nn.init.kaiming_normal_(kernel)
            bound = 1 / math.sqrt(in_channels)
            offset.uniform_(-bound, bound)
        elif out_channels != in_channels:
            nn.init.kaiming_normal_(kernel, nonlinearity='linear')
        row_block.copy_(kernel.repeat_interleave(4, dim=0))
        bias_block.copy_(offset.repeat_interleave(4))


def level_channels(stride: int, num_classes: int, channels: int | None) -> list[tuple[int, int]]:
    """Channels `(B, B), …, (B, C)` of the log2(s) sub-pixel convolutions of a decoder.

    `channels` is B, None for C, but at most 64: a level of C channels costs C² per position, which
    hundreds of classes need not.

    Raises:
        UserError: If B differs from C at s = 1, where no level leads from one to the other.
    """
    levels = num_levels(stride)
    default = min(num_classes, 64) if levels else num_classes
    width = default if channels is None else channels
    if not levels and width != num_classes:
        expected = 'None at stride=1, where a decoder is its projection alone'
        raise UserError(f'channels={channels}', '', expected)
    return [(width, width)] * (levels - 1) + [(width, num_classes)] * min(levels, 1)


def to_subpixel_layout(pixels: Tensor, stride: int) -> Tensor:
    """Reorders `(N, C, s·h, s·w)` to sub-pixel layout, `(C, R, s²/R, N, h·w)`.

    R = 4 (1 at stride 1); the last two axes together are P.
    """
    levels = num_levels(stride)
    n, c, height, width = pixels.shape
    h, w = height // stride, width // stride
    # axes: n, c, y, dy_1 … dy_L, x, dx_1 … dx_L; level 1 is the coarsest
    split = pixels.reshape(n, c, h, *[2] * levels, w, *[2] * levels)
    dy, dx = [3 + i for i in range(levels)], [4 + levels + i for i in range(levels)]
    subpixels = [axis for pair in zip(reversed(dy), reversed(dx)) for axis in pair]
    ordered = split.permute(1, *subpixels, 0, 2, 3 + levels)
    return ordered.reshape(c, min(4, stride**2), -1, n, h * w)


def subpixel_chunks(
    pixels: Tensor, stride: int, size: int, positions: Tensor | None = None
) -> Iterator[Tensor]:
    """Reorders `(N, C, s·h, s·w)` to sub-pixel layout, a chunk of p feature positions at a time.

    Chunks are `(C, R, s²/R · p)`, the last one padded with zeros. `positions` are `(S,)` indices
    into h·w, taken from every image; None for all. The buffer holds about one chunk or, with
    `positions`, one image.
    """
    # as many whole images at once as a chunk holds, or rows of one
    per_image = pixels[0, 0].numel() // stride**2 if positions is None else len(positions)
    slabs = pixels.split(max(size // per_image, 1))
    if positions is None and size < per_image:
        rows = max(size * stride // pixels.shape[-1], 1)
        slabs = [slab for image in slabs for slab in image.split(rows * stride, 2)]
    pieces, missing = [], size
    for slab in slabs:
        ordered = to_subpixel_layout(slab, stride)
        if positions is not None:
            ordered = ordered[..., positions]
        ordered = ordered.flatten(3)
        while ordered.shape[-1]:
            pieces.append(ordered[..., :missing])
            ordered = ordered[..., missing:]
            missing -= pieces[-1].shape[-1]
            if not missing:
                yield join(pieces, -1).flatten(-2)
                pieces, missing = [], size
    if pieces:
        yield fill_up(join(pieces, -1), size).flatten(-2)


def from_subpixel_layout(values: Tensor, size: tuple[int, int, int], stride: int) -> Tensor:
    """Reorders `(C, ...)`, in sub-pixel layout, back to `(N, C, s·h, s·w)`; `size` is N, h, w."""
    levels = num_levels(stride)
    (n, h, w), c = size, values.shape[0]
    split = values.reshape(c, *[2] * (2 * levels), n, h, w)
    # the inverse of the permutation above: axes are c, (dy_L, dx_L), …, (dy_1, dx_1), n, y, x
    dy = [1 + 2 * (levels - 1 - i) for i in range(levels)]
    dx = [axis + 1 for axis in dy]
    last = 2 * levels
    image = split.permute(last + 1, 0, last + 2, *dy, last + 3, *dx)
    return image.reshape(n, c, h * stride, w * stride)
