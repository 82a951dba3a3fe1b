"""The cluster assumption of section 3.1: smoothness maps, and ratios of boundary to inside.

Smoothness is the mean Euclidean distance between a location and its 8 neighbours, on patches of the
input image and on hidden features upsampled to its size. Where the cluster assumption holds, the
distance is large on class boundaries and small inside.

Shapes: `D` channels, `H×W` the image.
"""

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from matplotlib.figure import Figure
from mmengine.dataset import pseudo_collate
from torch import Tensor
from tqdm import tqdm

from mmseg_cct.apis.run import Run
from mmseg_cct.datasets.files.images import as_rgb
from mmseg_cct.datasets.leaves import data_folders
from mmseg_cct.engine.visualization.figures import bounded, png_bytes
from mmseg_cct.engine.visualization.label_maps import paint
from mmseg_cct.errors import UserError
from mmseg_cct.utils.files import write_atomic
from mmseg_cct.utils.output_folder import OutputFolder
from mmseg_cct.utils.templates import Table

# The distance is symmetric, so four of the 8 neighbours give all pairs.
HALF_OF_THE_NEIGHBOURS = ((0, 1), (1, -1), (1, 0), (1, 1))
PATCH_SIZE = 20
PATCHES = f'{PATCH_SIZE}×{PATCH_SIZE} patches'
_PICTURES = 4  # images in the figure
_CHANNELS = 32  # that are upsampled at a time


def write_clusters(
    run: Run,
    out: str | Path,
    layers: Sequence[str] = ('neck', 'backbone'),
    num_images: int = 8,
    boundary_width: int = 5,
    device: str | None = None,
) -> Table:
    """Analyses test images, and draws some in `clusters.png`.

    A boundary is twice `boundary_width` pixels wide. Returns the ratios of boundary to inside by
    image, and over all.

    Raises:
        UserError: The test set has no masks, or a layer no feature map.
    """
    dataset, model = run.test_loader.dataset, run.load_model(device)
    shown: list[Any] = []
    rows: list[list[str]] = []
    # of all images: a mean of ratios would weigh one with hardly any boundary as the others
    total = torch.zeros(1 + len(layers), 2, 2, dtype=torch.double)
    with OutputFolder(out, 'clusters.json', data_folders(run.config)):
        # Evenly spaced: neighbours in a set are often frames of one video.
        places = np.linspace(0, len(dataset) - 1, min(num_images, len(dataset)))
        for index in tqdm(places.round().astype(int), unit='image'):
            item = dataset[index]
            labels, maps = distance_maps(model, item, layers)
            regions = class_regions(labels, boundary_width)
            # The maps are large, so only their sums are kept.
            sums = torch.stack([contrast(values, *regions) for values in maps.values()])
            total += sums
            ratios = list(map(ratio, sums))
            path = item['data_samples'].metainfo.get('img_path')
            name = Path(path).stem if path else f'image {index}'
            rows.append([name, *(f'{value:.2f}' for value in ratios)])
            if len(shown) < _PICTURES:
                image = as_rgb(item['inputs'].numpy().transpose(1, 2, 0))
                shown.append((image, labels.numpy(), maps, ratios))
        figure = plot_maps(shown, dataset.metainfo.get('palette') or ())
        write_atomic(Path(out, 'clusters.png'), png_bytes(figure))
    rows.append(['all images', *(f'{ratio(sums):.2f}' for sums in total)])
    return Table(['image', PATCHES, *layers], rows)


@torch.no_grad()
def distance_maps(
    model: Any, item: dict, layers: Sequence[str]
) -> tuple[Tensor, dict[str, Tensor]]:
    """Computes the smoothness maps `(H, W)` of the patches and of each module's output, by name.

    `item` is an output of the test pipeline; the first result is its labels at the same size.
    """
    image, sample = item['inputs'], item['data_samples']
    if 'gt_sem_seg' not in sample:
        raise UserError('test_dataloader.dataset', 'has no masks', 'labelled images')
    data = model.data_preprocessor(pseudo_collate([item]), training=False)
    outputs: dict[str, Any] = {}
    hooks = []
    for name in layers:
        try:
            module = model.get_submodule(name)
        except AttributeError as error:
            raise UserError(f'--layers {name}', error) from None
        keep = lambda _, __, output, name=name: outputs.__setitem__(name, output)  # noqa: E731
        hooks.append(module.register_forward_hook(keep))
    model(data['inputs'], data['data_samples'], mode='tensor')
    for hook in hooks:
        hook.remove()

    height, width = image.shape[-2:]
    # the image as it was loaded: normalised channels would weigh differently in the distance
    pixels = image.to(data['inputs'].device, torch.float32) / 255
    maps = {PATCHES: mean_neighbour_distance(pixels, PATCH_SIZE)}
    for name in layers:
        output = outputs.get(name)
        # of a backbone's stages the last, which the heads see
        while isinstance(output, (tuple, list)):
            output = output[-1]
        if not isinstance(output, Tensor) or output.dim() != 4:
            raise UserError(f'--layers {name}', 'gives no feature map when the model predicts')
        # padded right and below
        maps[name] = mean_neighbour_distance(output[0], 1, data['inputs'].shape[-2:])
    # test pipelines load masks after the resize, at full size
    ids = sample.gt_sem_seg.data[None].float()
    labels = F.interpolate(ids, (height, width), mode='nearest-exact')[0, 0].long()
    return labels, {name: values[:height, :width].cpu() for name, values in maps.items()}


def plot_maps(shown: Sequence[tuple], palette: Sequence[Sequence[int]]) -> Figure:
    """Plots a row per image: image, labels and maps, dark where the distance is large.

    The ratio is below each map.
    """
    names = ['image', 'labels', *shown[0][2]]
    height, width = shown[0][0].shape[:2]
    size = 3.0 * len(names), (3.0 * bounded(height / width) + 0.3) * len(shown)
    figure = Figure(figsize=size, layout='constrained')
    grid = figure.subplots(len(shown), len(names), squeeze=False)
    for line, (image, labels, maps, ratios) in zip(grid, shown):
        line[0].imshow(image, interpolation='nearest')
        line[1].imshow(paint(labels, palette), interpolation='nearest')
        for axes, values, value in zip(line[2:], maps.values(), ratios):
            low, high = np.percentile(values, [1, 99])  # without outliers
            axes.imshow(values, cmap='gray_r', vmin=low, vmax=high)
            axes.set_xlabel(f'boundary / inside {value:.2f}')
    for axes in grid.flat:
        axes.set(xticks=[], yticks=[])
    for axes, name in zip(grid[0], names):
        axes.set_title(name)
    return figure


def mean_neighbour_distance(
    features: Tensor, patch_size: int = 1, size: Sequence[int] | None = None
) -> Tensor:
    """Mean Euclidean distance between the patch at each location and those at its 8 neighbours.

    Features `(D, h, w)` are upsampled bilinearly to a size `(H, W)`, a few channels at a time. The
    result is `(H, W)`; on the border it is the mean over existing neighbours.

    A squared distance of patches is a sum of squared differences over the patch, so one box filter
    replaces all patches. A patch that crosses the border is compared on the part inside the map,
    and its distance is scaled up.
    """
    height, width = size or features.shape[-2:]
    squares: dict[tuple[int, int], Tensor] = {}
    for part in features.float().split(_CHANNELS):
        if size is not None:
            part = F.interpolate(part[None], (height, width), mode='bilinear')[0]
        for shift in HALF_OF_THE_NEIGHBOURS:
            here, there = ((slice(None), *place) for place in _pair(height, width, shift))
            square = (part[here] - part[there]).square().sum(0)
            squares[shift] = squares[shift] + square if shift in squares else square
    total = features.new_zeros(height, width, dtype=torch.float32)
    count = torch.zeros_like(total)
    for shift, square in squares.items():
        distance = _sum_over_patches(square, patch_size).sqrt()
        for end in _pair(height, width, shift):
            total[end] += distance
            count[end] += 1
    return total / count


def class_regions(labels: Tensor, width: int = 5) -> tuple[Tensor, Tensor]:
    """Masks of class boundaries and of the inside of classes, each `(H, W)` bool.

    A location is on a boundary if the window of ±`width` pixels around it has two classes, and
    inside if it has one class and no ignored pixel (255). So an ignored contour between two
    objects, as PASCAL VOC draws it, is a boundary; near other ignored pixels a location is neither.
    """

    def highest(values: Tensor) -> Tensor:
        return F.max_pool2d(values[None], 2 * width + 1, stride=1, padding=width)[0]

    ignored, ids = labels == 255, labels.double()
    # a window has one class where its largest id is its smallest
    largest = highest(ids.masked_fill(ignored, -torch.inf))
    smallest = -highest((-ids).masked_fill(ignored, -torch.inf))
    return largest > smallest, (largest == smallest) & (highest(ignored.double()) == 0)


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
