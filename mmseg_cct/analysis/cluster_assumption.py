"""Local smoothness of images and features, the cluster assumption of section 3.1.

Smoothness is the mean Euclidean distance between a location and its 8 neighbours, on patches of the
input image and on hidden features upsampled to its size. Where the cluster assumption holds, the
distance is large on class boundaries and small inside.

Shapes: `D` channels, `H×W` the image.
"""

import math
from collections.abc import Iterable, Iterator

import torch
import torch.nn.functional as F
from torch import Tensor

# The distance is symmetric, so four of the 8 neighbours give all pairs.
HALF_OF_THE_NEIGHBOURS = ((0, 1), (1, -1), (1, 0), (1, 1))
PATCH_SIZE = 20


def mean_neighbour_distance(channels: Iterable[Tensor], patch_size: int = 1) -> Tensor:
    """Mean Euclidean distance between the patch at each location and those at its 8 neighbours.

    The map comes in parts `(d, H, W)` of its `D` channels, one of which is in memory at a time. The
    result is `(H, W)`; on the border it is the mean over existing neighbours.

    A squared distance of patches is a sum of squared differences over the patch, so one box filter
    replaces all patches. A patch that crosses the border is compared on the part inside the map,
    and its distance is scaled up.
    """
    squares: dict[tuple[int, int], Tensor] = {}
    for part in channels:
        height, width = part.shape[-2:]
        for shift in HALF_OF_THE_NEIGHBOURS:
            here, there = _pair(height, width, shift)
            square = (part[(..., *here)] - part[(..., *there)]).square().sum(0)
            squares[shift] = squares[shift] + square if shift in squares else square

    total = torch.zeros(height, width, device=part.device)
    count = torch.zeros_like(total)
    for shift, square in squares.items():
        distance = _sum_over_patches(square, patch_size).sqrt()
        for end in _pair(height, width, shift):
            total[end] += distance
            count[end] += 1
    return total / count


def upsampled(features: Tensor, size: tuple[int, int], channels: int = 32) -> Iterator[Tensor]:
    """Upsamples features `(D, h, w)` bilinearly to `(d, H, W)`, at most `channels` at a time."""
    for part in features.split(channels):
        yield F.interpolate(part[None].float(), size, mode='bilinear', align_corners=False)[0]


def resize_nearest(labels: Tensor, size: tuple[int, int]) -> Tensor:
    """Resizes labels `(1, ·, ·)` by nearest neighbour to `(H, W)` of the same type."""
    resized = F.interpolate(labels[None].float(), size, mode='nearest-exact')
    return resized[0, 0].to(labels.dtype)


def class_regions(labels: Tensor, width: int = 5) -> tuple[Tensor, Tensor]:
    """Masks of class boundaries and of the inside of classes, each `(H, W)` bool.

    A location is on a boundary if the window of ±`width` pixels around it has two classes, and
    inside if it has one class and no ignored pixel (255). So an ignored contour between two
    objects, as PASCAL VOC draws it, is a boundary; near other ignored pixels a location is neither.
    """
    ignored = labels == 255
    ids = labels.double()
    infinity = torch.full_like(ids, torch.inf)
    largest = _window_maximum(torch.where(ignored, -infinity, ids), width)
    smallest = -_window_maximum(torch.where(ignored, -infinity, -ids), width)
    sees_ignored = _window_maximum(ignored.double(), width) > 0
    return largest > smallest, (largest == smallest) & ~sees_ignored


def contrast(distances: Tensor, boundary: Tensor, inside: Tensor) -> Tensor:
    """Sums a map of distances over two masks, all `(H, W)`; images add up.

    Returns the sums and the numbers of pixels, `[[on boundaries, inside], [pixels, pixels]]`.
    """
    parts = [distances[mask].double() for mask in (boundary, inside)]
    return torch.stack([torch.stack([part.sum(), part.new_tensor(len(part))]) for part in parts], 1)


def ratio(contrast: Tensor) -> float:
    """Mean distance on boundaries divided by that inside; large where the assumption holds.

    It is inf if the inside is constant, and nan without boundaries or without an inside.
    """
    on_boundary, inside = (contrast[0] / contrast[1]).tolist()
    return on_boundary / inside if inside else math.inf * on_boundary


def _pair(height: int, width: int, shift: tuple[int, int]) -> tuple[tuple[slice, slice], ...]:
    """Slices of all locations with a neighbour at (dy, dx), dy ≥ 0, and of these neighbours."""
    dy, dx = shift
    here = slice(0, height - dy), slice(max(-dx, 0), width - max(dx, 0))
    there = slice(dy, height), slice(max(dx, 0), width + min(dx, 0))
    return here, there


def _sum_over_patches(values: Tensor, patch_size: int) -> Tensor:
    """Sums over the patch around each location, extrapolated from its part inside the map."""
    if patch_size == 1:
        return values
    mean = F.avg_pool2d(
        values[None], patch_size, stride=1, padding=patch_size // 2, count_include_pad=False
    )[0]
    # A patch of even side has no centre and reaches one pixel further up and left.
    return mean[: values.shape[0], : values.shape[1]] * patch_size**2


def _window_maximum(values: Tensor, width: int) -> Tensor:
    return F.max_pool2d(values[None], 2 * width + 1, stride=1, padding=width)[0]
