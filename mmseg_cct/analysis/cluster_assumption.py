"""The cluster assumption, section 3.1 of the paper: do low-density regions lie on class boundaries?

Density is judged by local smoothness: the mean Euclidean distance between a location and its 8
neighbours, on patches of the input image and on hidden features upsampled to its size. Where the
assumption holds, the distance is large on class boundaries and small inside.

Shapes: `D` channels, `H×W` the image.
"""

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor

# The distance is symmetric, so these four of the 8 neighbours serve both ends of each pair.
HALF_OF_THE_NEIGHBOURS = ((0, 1), (1, -1), (1, 0), (1, 1))
PATCH_SIZE = 20


def mean_neighbour_distance(channels: Iterable[Tensor], patch_size: int = 1) -> Tensor:
    """Mean Euclidean distance between each location and its 8 neighbours.

    What is compared are the patches centred there. Between two patches it is the root of the sum of
    squared differences over the patch, so one box filter replaces all patches. A patch that reaches
    over the border of the image is compared as far as it lies in it, and its distance scaled up.

    Args:
        channels: Parts `(d, H, W)` of a map, which together are its channels; only one of them has
            to be in memory at a time.
        patch_size: Side of a patch; 1 compares single locations.

    Returns:
        `(H, W)`; on the border the mean over the neighbours that exist.
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
    """Resizes a feature map bilinearly, a few channels at a time.

    Args:
        features: `(D, h, w)`.
        size: H, W.
        channels: Number of channels in memory at the new size.

    Yields:
        `(d, H, W)`, d at most `channels`.
    """
    for part in features.split(channels):
        yield F.interpolate(part[None].float(), size, mode='bilinear', align_corners=False)[0]


def class_regions(labels: Tensor, width: int = 5, ignore_index: int = 255) -> tuple[Tensor, Tensor]:
    """Which locations lie on a class boundary, and which inside a class.

    A location is on a boundary if the window of ±`width` pixels around it shows two classes, and
    inside if it shows one class and nothing else. Ignored pixels are no class: near them a location
    that sees one class only is neither; and the ignored contour of two objects, as PASCAL VOC draws
    it, is a boundary.

    Args:
        labels: `(H, W)` class ids or `ignore_index`.
        width: Half the width of a boundary, in pixels.
        ignore_index: Label of the pixels without truth.

    Returns:
        Boundary and inside, each `(H, W)` bool.
    """
    ignored = labels == ignore_index
    ids = labels.double()
    infinity = torch.full_like(ids, torch.inf)
    largest = _window_maximum(torch.where(ignored, -infinity, ids), width)
    smallest = -_window_maximum(torch.where(ignored, -infinity, -ids), width)
    sees_ignored = _window_maximum(ignored.double(), width) > 0
    return largest > smallest, (largest == smallest) & ~sees_ignored


@dataclass(frozen=True)
class BoundaryContrast:
    """Distances summed over class boundaries and over the inside of classes; images add up.

    Attributes:
        boundary_sum: Sum of the distances on boundaries.
        boundary_count: Number of locations there.
        inside_sum: Sum of the distances inside.
        inside_count: Number of locations there.
    """

    boundary_sum: float = 0.0
    boundary_count: int = 0
    inside_sum: float = 0.0
    inside_count: int = 0

    @classmethod
    def of(cls, distances: Tensor, boundary: Tensor, inside: Tensor) -> 'BoundaryContrast':
        """The contrast of one map.

        Args:
            distances: `(H, W)`.
            boundary: `(H, W)` bool.
            inside: `(H, W)` bool.

        Returns:
            The contrast.
        """
        on, within = distances[boundary].double(), distances[inside].double()
        return cls(on.sum().item(), on.numel(), within.sum().item(), within.numel())

    def __add__(self, other: 'BoundaryContrast') -> 'BoundaryContrast':
        return BoundaryContrast(
            self.boundary_sum + other.boundary_sum,
            self.boundary_count + other.boundary_count,
            self.inside_sum + other.inside_sum,
            self.inside_count + other.inside_count,
        )

    @property
    def boundary_mean(self) -> float:
        """Mean distance on boundaries; nan without any."""
        return _mean(self.boundary_sum, self.boundary_count)

    @property
    def inside_mean(self) -> float:
        """Mean distance inside; nan if nothing is."""
        return _mean(self.inside_sum, self.inside_count)

    @property
    def ratio(self) -> float:
        """Mean distance on boundaries over that inside: the larger, the more the assumption holds.

        inf if nothing differs inside, nan without boundaries or without an inside.
        """
        if self.inside_mean == 0:
            return math.inf * self.boundary_mean
        return self.boundary_mean / self.inside_mean


def _mean(total: float, count: int) -> float:
    return total / count if count else math.nan


def _pair(height: int, width: int, shift: tuple[int, int]) -> tuple[tuple[slice, slice], ...]:
    """The locations that have a neighbour at (dy, dx), dy ≥ 0, and these neighbours."""
    dy, dx = shift
    here = slice(0, height - dy), slice(max(-dx, 0), width - max(dx, 0))
    there = slice(dy, height), slice(max(dx, 0), width + min(dx, 0))
    return here, there


def _sum_over_patches(values: Tensor, patch_size: int) -> Tensor:
    """Sum over the patch around each location, taken from the part of it inside the map."""
    if patch_size == 1:
        return values
    mean = F.avg_pool2d(
        values[None], patch_size, stride=1, padding=patch_size // 2, count_include_pad=False
    )[0]
    # a patch of even side has no centre: it reaches one pixel further up and left
    return mean[: values.shape[0], : values.shape[1]] * patch_size**2


def _window_maximum(values: Tensor, width: int) -> Tensor:
    return F.max_pool2d(values[None], 2 * width + 1, stride=1, padding=width)[0]
