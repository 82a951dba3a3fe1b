"""The cluster assumption of section 3.1: smoothness maps, and ratios of boundary to inside.

Smoothness is the mean Euclidean distance between a location and its 8 neighbours, on patches of the
input image and on hidden features upsampled to its size. Where the cluster assumption holds, the
distance is large on class boundaries and small inside.

Shapes: `D` channels, `H×W` the image.
"""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from matplotlib.figure import Figure
from mmengine.config import Config
from mmengine.dataset import pseudo_collate
from mmengine.device import get_device
from mmengine.logging import MMLogger
from mmengine.registry import init_default_scope
from mmseg.registry import MODELS
from torch import Tensor, nn
from tqdm import tqdm

from mmseg_cct.apis.run import Run
from mmseg_cct.config.domains import require_one_domain
from mmseg_cct.config.load import load_config
from mmseg_cct.datasets.files.images import as_rgb
from mmseg_cct.datasets.leaves import data_folders
from mmseg_cct.engine.checkpoints import require_checkpoint
from mmseg_cct.engine.visualization.figures import bounded, png_bytes
from mmseg_cct.engine.visualization.label_maps import paint
from mmseg_cct.errors import UserError
from mmseg_cct.preflight.files import build_evaluation_set
from mmseg_cct.preflight.pretrained import fetch_pretrained_weights
from mmseg_cct.utils.files import write_atomic, write_text
from mmseg_cct.utils.output_folder import OutputFolder
from mmseg_cct.utils.templates import Table, render

# The distance is symmetric, so four of the 8 neighbours give all pairs.
HALF_OF_THE_NEIGHBOURS = ((0, 1), (1, -1), (1, 0), (1, 1))
PATCH_SIZE = 20
PATCHES = f'{PATCH_SIZE}×{PATCH_SIZE} patches'
ALL = 'all images'
_PICTURES = 4  # images in the figure


@dataclass(frozen=True)
class Analysis:
    """Smoothness maps of one image, for the patches and for each layer by name."""

    image: np.ndarray  # (H, W, 3) uint8, RGB, at the size of the network's input
    labels: np.ndarray  # (H, W) class ids, 255 where ignored
    distances: dict[str, np.ndarray]  # (H, W) mean distances
    contrasts: dict[str, Tensor]  # boundary against inside, by `contrast`


@dataclass(frozen=True)
class ClusterRequest:
    """The options of `tools/analyze_clusters.py`, which explains them."""

    config: str
    checkpoint: str | None
    out: str
    layers: Sequence[str] = ()
    num_images: int = 8
    boundary_width: int = 5
    margin: int = 0
    cfg_options: Mapping[str, Any] = field(default_factory=dict)
    device: str | None = None


def write_cluster_report(request: ClusterRequest) -> list[Path]:
    """Analyses test images, writes `clusters.png` and `clusters.md` and returns their paths."""
    config = load_config(request.config, dict(request.cfg_options))
    require_one_domain(config, request.config)
    init_default_scope(config.get('default_scope') or 'mmseg')
    settings = (config.get('test_dataloader') or {}).get('dataset')
    if settings is None:
        raise UserError(request.config, 'no test_dataloader.dataset', 'labelled images')
    dataset = build_evaluation_set(settings, f'{request.config}: test_dataloader.dataset')
    model = _build_model(config, request.checkpoint, request.device)
    OutputFolder(request.out, 'clusters.json', data_folders(config)).claim()
    layers = request.layers
    if not layers:  # without a checkpoint the neck is random
        with_neck = request.checkpoint is not None and getattr(model, 'with_neck', False)
        layers = ['neck', 'backbone'] if with_neck else ['backbone']
    modules = {name: _find_module(model, name) for name in layers}

    # One image after the other: the maps are large, so only their sums are kept.
    shown: list[Analysis] = []
    contrasts: dict[str, dict[str, Tensor]] = {}
    total: dict[str, Tensor] = {}
    # Evenly spaced: neighbours in a set are often frames of one video.
    number = min(request.num_images, len(dataset))
    for index in tqdm(np.linspace(0, len(dataset) - 1, number).round().astype(int), unit='image'):
        item = dataset[index]
        analysis = analyze(model, item, modules, request.boundary_width, request.margin)
        contrasts[_name_of(dataset, item, index)] = analysis.contrasts
        for name, values in analysis.contrasts.items():
            total[name] = total.get(name, 0) + values
        shown = [*shown, analysis][:_PICTURES]

    ratios = ratio_table({**contrasts, ALL: total})
    picture, page = Path(request.out, 'clusters.png'), Path(request.out, 'clusters.md')
    palette = dataset.metainfo.get('palette') or ()
    write_atomic(picture, png_bytes(plot_maps(shown, palette)))
    write_text(page, render('studies/clusters.md.jinja', ratios=ratios))
    return [picture, page]


@torch.no_grad()
def analyze(
    model: Any,
    item: dict,
    modules: Mapping[str, nn.Module],
    boundary_width: int = 5,
    margin: int = 0,
) -> Analysis:
    """Computes the smoothness maps of the patches and of each module's output, by name.

    `item` is an output of the test pipeline. A boundary is twice `boundary_width` pixels wide, and
    ratios leave out `margin` pixels at the image's border.
    """
    image, sample = item['inputs'], item['data_samples']
    if 'gt_sem_seg' not in sample:
        raise UserError('test_dataloader.dataset', 'has no masks', 'labelled images')
    data = model.data_preprocessor(pseudo_collate([item]), training=False)
    with _outputs_of(modules) as outputs:
        model(data['inputs'], data['data_samples'], mode='tensor')

    height, width = image.shape[-2:]
    padded = data['inputs'].shape[-2:]  # padded right and below
    pixels = image.to(data['inputs'].device, torch.float32) / 255
    distances = {PATCHES: mean_neighbour_distance([pixels], PATCH_SIZE)}
    for name in modules:
        features = _feature_map(name, outputs)
        parts = (part[:, :height, :width] for part in upsampled(features, padded))
        distances[name] = mean_neighbour_distance(parts)

    # test pipelines load masks after the resize, at full size
    labels = resize_nearest(sample.gt_sem_seg.data, (height, width)).long()
    inner = slice(margin, height - margin), slice(margin, width - margin)
    regions = [region[inner] for region in class_regions(labels, boundary_width)]
    maps = {name: values.cpu() for name, values in distances.items()}
    return Analysis(
        as_rgb(image.numpy().transpose(1, 2, 0)),
        labels.numpy(),
        {name: values.numpy() for name, values in maps.items()},
        {name: contrast(values[inner], *regions) for name, values in maps.items()},
    )


def ratio_table(contrasts: Mapping[str, Mapping[str, Tensor]]) -> Table:
    """Lists the ratios of boundary to inside, one row per image."""
    rows = [
        [image, *(f'{ratio(sums):.2f}' for sums in row.values())]
        for image, row in contrasts.items()
    ]
    return Table(['image', *next(iter(contrasts.values()))], rows)


def plot_maps(analyses: Sequence[Analysis], palette: Sequence[Sequence[int]]) -> Figure:
    """Plots a row per analysis: image, labels and maps, dark where the distance is large.

    The ratio is below each map.
    """
    names = list(analyses[0].distances)
    height, width = analyses[0].image.shape[:2]
    side, columns = 3.0, 2 + len(names)
    figure = Figure(
        figsize=(side * columns, (side * bounded(height / width) + 0.3) * len(analyses)),
        layout='constrained',
    )
    grid = figure.subplots(len(analyses), columns, squeeze=False)
    for line, analysis in zip(grid, analyses):
        line[0].imshow(analysis.image, interpolation='nearest')
        line[1].imshow(paint(analysis.labels, palette), interpolation='nearest')
        for axes, (name, values) in zip(line[2:], analysis.distances.items()):
            low, high = np.percentile(values, [1, 99])  # without outliers
            axes.imshow(values, cmap='gray_r', vmin=low, vmax=high)
            axes.set_xlabel(f'boundary / inside {ratio(analysis.contrasts[name]):.2f}')
    for axes in grid.flat:
        axes.set(xticks=[], yticks=[])
    for axes, name in zip(grid[0], ['image', 'labels', *names]):
        axes.set_title(name)
    return figure


def _name_of(dataset: Any, item: dict, index: int) -> str:
    """Returns an image's path below the data set's folder, without extension: names may repeat."""
    path = item['data_samples'].metainfo.get('img_path')
    if path is None:
        return f'image {index}'
    folder = getattr(dataset, 'data_prefix', {}).get('img_path') or ''
    file = Path(path).with_suffix('')
    return (file.relative_to(folder) if file.is_relative_to(folder) else file).as_posix()


def _build_model(config: Config, checkpoint: str | None, device: str | None) -> Any:
    if checkpoint is not None:
        require_checkpoint(checkpoint)
        return Run(config, checkpoint, '').load_model(device)
    fetch_pretrained_weights(config.model)
    # Otherwise `init_weights` logs every parameter.
    MMLogger.get_instance('analyze_clusters', log_level='WARNING')
    model = MODELS.build(config.model)
    model.init_weights()
    return model.to(device or get_device()).eval()


def _find_module(model: nn.Module, name: str) -> nn.Module:
    modules = dict(model.named_modules())
    if name not in modules or not name:
        near = [known for known in modules if known.startswith(name.split('.')[0])][1:9]
        hint = ', '.join(near or [known for known, _ in model.named_children()])
        raise UserError(f'--layers {name}', 'the model has no such module', f'a name like {hint}')
    return modules[name]


@contextmanager
def _outputs_of(modules: Mapping[str, nn.Module]) -> Iterator[dict[str, Any]]:
    """Collects the outputs of modules while the body runs."""
    outputs: dict[str, Any] = {}

    def collect(name: str) -> Any:
        return lambda module, args, output: outputs.__setitem__(name, output)

    with ExitStack() as hooks:
        for name, module in modules.items():
            hooks.enter_context(module.register_forward_hook(collect(name)))
        yield outputs


def _feature_map(name: str, outputs: Mapping[str, Any]) -> Tensor:
    """Returns the last feature map of a module's output, `(D, h, w)`."""
    if name not in outputs:
        raise UserError(
            f'--layers {name}',
            'gives no output of its own when the model predicts',
            'a module of backbone or neck, or a layer inside the main decoder, such as '
            'decode_head.conv_seg',
        )
    output = outputs[name]
    while isinstance(output, (tuple, list)):
        output = output[-1]
    if not isinstance(output, Tensor) or output.dim() != 4:
        shape = tuple(output.shape) if isinstance(output, Tensor) else type(output).__name__
        raise UserError(f'--layers {name}', f'gives {shape}', 'a feature map (1, D, h, w)')
    return output[0]


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
