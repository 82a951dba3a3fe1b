"""Report on the cluster assumption: smoothness maps, and ratios of boundary to inside."""

import csv
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch
from matplotlib.figure import Figure
from mmengine.config import Config
from mmengine.dataset import Compose, pseudo_collate
from mmengine.device import get_device
from mmengine.logging import MMLogger
from mmengine.registry import init_default_scope
from mmseg.registry import MODELS
from torch import Tensor, nn
from tqdm import tqdm

from mmseg_cct.apis.inference import load_model, without_annotations
from mmseg_cct.apis.pretrained import fetch_pretrained_weights
from mmseg_cct.config.domains import require_one_domain
from mmseg_cct.config.load import load_config
from mmseg_cct.datasets.data_folders import data_folders
from mmseg_cct.engine.checkpoints import require_checkpoint
from mmseg_cct.errors import UserError
from mmseg_cct.preflight.evaluation_set import build_evaluation_set
from mmseg_cct.utils.files import write_atomic, write_text
from mmseg_cct.utils.image_files import as_rgb, find_images
from mmseg_cct.utils.images import image_size, loader_in
from mmseg_cct.utils.markdown import Table
from mmseg_cct.utils.output_folder import OutputFolder
from mmseg_cct.utils.templates import render
from mmseg_cct.visualization.figures import bounded, png_bytes
from mmseg_cct.visualization.label_maps import full_palette

from .cluster_assumption import (
    PATCH_SIZE,
    BoundaryContrast,
    class_regions,
    mean_neighbour_distance,
    resize_nearest,
    upsampled,
)

PATCHES = f'{PATCH_SIZE}×{PATCH_SIZE} patches'
ALL = 'all images'


@dataclass(frozen=True)
class Analysis:
    """Smoothness maps of one image.

    Attributes:
        image: `(H, W, 3)` uint8, RGB, at the size of the network's input.
        labels: `(H, W)` class ids, 255 where ignored; None without a mask.
        distances: `(H, W)` mean distances, for the patches and for each layer.
        contrasts: Boundary against inside for the same keys; empty without a mask.
    """

    image: np.ndarray
    labels: np.ndarray | None
    distances: dict[str, np.ndarray]
    contrasts: dict[str, BoundaryContrast]


@dataclass(frozen=True)
class ClusterRequest:
    """The options of a report.

    Attributes:
        config: Path of the model's config.
        checkpoint: Weights; by default the pretrained ones that the config names.
        out: Output folder.
        layers: Dotted names of modules; by default the backbone and, with a checkpoint, the neck,
            whose last output is z.
        images: An image or a folder of images without masks; None takes the config's data set.
        split: Data set of the config, 'test' or 'val'.
        num_images: Number of images, evenly spaced over the set.
        pictures: Number of images in the figure.
        boundary_width: Half the width of a boundary in pixels, as in `class_regions`.
        margin: Width in pixels of the image border that ratios leave out. In small feature maps the
            zero padding of convolutions dominates there.
        cfg_options: Settings to override, by dotted key.
        device: Device of the model; by default the first GPU, else the CPU.
    """

    config: str
    checkpoint: str | None
    out: str
    layers: Sequence[str] = ()
    images: str | None = None
    split: str = 'test'
    num_images: int = 8
    pictures: int = 4
    boundary_width: int = 5
    margin: int = 0
    cfg_options: Mapping[str, Any] = field(default_factory=dict)
    device: str | None = None


def write_cluster_report(request: ClusterRequest) -> list[Path]:
    """Analyses images and writes `clusters.png` and, with masks, `clusters.csv` and `clusters.md`.

    Returns the paths of the written files.
    """
    checkpoint, out, images = request.checkpoint, request.out, request.images
    config = load_config(request.config, dict(request.cfg_options))
    require_one_domain(config, request.config)
    init_default_scope(config.get('default_scope') or 'mmseg')
    items, palette = _find_items(config, request)
    model = _build_model(config, checkpoint, request.device)
    inputs = {*data_folders(config), *([images] if images is not None else ())}
    OutputFolder(out, 'clusters.json', inputs).claim()
    layers = request.layers
    if not layers:  # without a checkpoint the neck is random
        with_neck = checkpoint is not None and getattr(model, 'with_neck', False)
        layers = ['neck', 'backbone'] if with_neck else ['backbone']
    modules = {name: _find_module(model, name) for name in layers}

    analyses: list[Analysis] = []
    contrasts: list[tuple[str, dict[str, BoundaryContrast]]] = []
    for item in tqdm(items, total=len(items), unit='image'):
        analysis = analyze(model, item, modules, request.boundary_width, request.margin)
        if analysis.contrasts:
            contrasts.append((items.name_of(item), analysis.contrasts))
        if len(analyses) < request.pictures:
            analyses.append(analysis)

    folder = Path(out)
    files = [folder / 'clusters.png']
    write_atomic(files[0], png_bytes(plot_maps(analyses, palette)))
    if contrasts:
        total = {
            name: sum((each[name] for _, each in contrasts), BoundaryContrast())
            for name in contrasts[0][1]
        }
        contrasts.append((ALL, total))
        files += [folder / 'clusters.csv', folder / 'clusters.md']
        _write_csv(files[1], contrasts)
        write_text(files[2], render('analysis/clusters.md.jinja', ratios=ratio_table(contrasts)))
    return files


@torch.no_grad()
def analyze(
    model: Any,
    item: dict,
    modules: Mapping[str, nn.Module],
    boundary_width: int = 5,
    margin: int = 0,
) -> Analysis:
    """Computes the smoothness maps of the patches and of each module's output, by name.

    `item` is an output of the test pipeline; the other arguments are as in `ClusterRequest`.
    """
    image, sample = item['inputs'], item['data_samples']
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

    labels, contrasts = None, {}
    if 'gt_sem_seg' in sample:
        # test pipelines load masks after the resize, at full size
        labels = resize_nearest(sample.gt_sem_seg.data, (height, width)).long()
        inner = slice(margin, height - margin), slice(margin, width - margin)
        regions = [
            region[inner].to(pixels.device) for region in class_regions(labels, boundary_width)
        ]
        contrasts = {
            name: BoundaryContrast.of(values[inner], *regions) for name, values in distances.items()
        }
    return Analysis(
        as_rgb(image.numpy().transpose(1, 2, 0)),
        None if labels is None else labels.numpy(),
        {name: values.cpu().numpy() for name, values in distances.items()},
        contrasts,
    )


def ratio_table(contrasts: Sequence[tuple[str, Mapping[str, BoundaryContrast]]]) -> Table:
    """Lists the ratios of boundary to inside, one row per image."""
    names = list(contrasts[0][1])
    rows = [[image, *(f'{row[name].ratio:.2f}' for name in names)] for image, row in contrasts]
    return Table(['image', *names], rows)


def plot_maps(analyses: Sequence[Analysis], palette: np.ndarray) -> Figure:
    """Plots a row per analysis: image, labels and maps, dark where the distance is large.

    `palette` is `(256, 3)` uint8, RGB. The ratio is below each map.
    """
    rows = []
    for analysis in analyses:
        pictures: dict[str, Any] = {'image': analysis.image}
        if analysis.labels is not None:
            pictures['labels'] = palette[analysis.labels]
        rows.append({**pictures, **analysis.distances})
    names = list(dict.fromkeys(name for row in rows for name in row))
    height, width = analyses[0].image.shape[:2]
    side = 3.0
    figure = Figure(
        figsize=(side * len(names), (side * bounded(height / width) + 0.3) * len(rows)),
        layout='constrained',
    )
    grid = figure.subplots(len(rows), len(names), squeeze=False)
    for line, row, analysis in zip(grid, rows, analyses):
        for axes, name in zip(line, names):
            axes.set_xticks([])
            axes.set_yticks([])
            if name in analysis.distances:
                low, high = np.percentile(row[name], [1, 99])  # without outliers
                axes.imshow(row[name], cmap='gray_r', vmin=low, vmax=high)
            elif name in row:
                axes.imshow(row[name], interpolation='nearest')
            if name in analysis.contrasts:
                axes.set_xlabel(f'boundary / inside {analysis.contrasts[name].ratio:.2f}')
    for axes, name in zip(grid[0], names):
        axes.set_title(name)
    return figure


def _find_items(config: Config, request: ClusterRequest) -> tuple['_Items', np.ndarray]:
    """Evenly spaced items of the test pipeline, and the colours of class ids."""
    config_file, images, num_images = request.config, request.images, request.num_images
    key = f'{request.split}_dataloader'
    settings = (config.get(key) or {}).get('dataset')
    if settings is None:
        raise UserError(config_file, f'no {key}.dataset', 'one, for its pipeline')
    if images is not None:
        path = Path(images)
        files = [path] if path.is_file() else list(find_images(images).values())
        pipeline = Compose(without_annotations(settings.pipeline))

        def load(file: Path) -> dict:
            image_size(str(file), None, True, loader_in(pipeline))  # explains what cannot be read
            return pipeline(dict(img_path=str(file), seg_fields=[]))

        return _Items(files, load, num_images), full_palette(())
    dataset = build_evaluation_set(settings, f'{config_file}: {key}.dataset')
    folder = getattr(dataset, 'data_prefix', {}).get('img_path') or ''
    items = _Items(range(len(dataset)), dataset.__getitem__, num_images, folder)
    return items, full_palette(dataset.metainfo.get('palette') or ())


class _Items:
    """Evenly spaced subset; neighbours in a set are often frames of one video."""

    def __init__(self, keys: Sequence, load: Any, count: int, folder: str = '') -> None:
        chosen = np.linspace(0, len(keys) - 1, min(count, len(keys))).round().astype(int)
        self.keys = [keys[index] for index in chosen]
        self.load = load
        self.folder = folder

    def __len__(self) -> int:
        return len(self.keys)

    def __iter__(self) -> Iterator[dict]:
        return map(self.load, self.keys)

    def name_of(self, item: dict) -> str:
        """Returns the path below the folder, without extension: file names may repeat."""
        path = Path(item['data_samples'].img_path).with_suffix('')
        inside = path.is_relative_to(self.folder)
        return (path.relative_to(self.folder) if inside else path).as_posix()


def _build_model(config: Config, checkpoint: str | None, device: str | None) -> Any:
    if checkpoint is not None:
        require_checkpoint(checkpoint)
        return load_model(config, checkpoint, device)
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

    handles = [module.register_forward_hook(collect(name)) for name, module in modules.items()]
    try:
        yield outputs
    finally:
        for handle in handles:
            handle.remove()


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


def _write_csv(file: Path, contrasts: Sequence[tuple[str, Mapping[str, BoundaryContrast]]]) -> None:
    with file.open('w', newline='', encoding='utf-8', errors='backslashreplace') as stream:
        writer = csv.writer(stream)
        writer.writerow(['image', 'map', 'boundary', 'inside', 'ratio'])
        for image, row in contrasts:
            for name, contrast in row.items():
                values = (contrast.boundary_mean, contrast.inside_mean, contrast.ratio)
                writer.writerow([image, name, *(f'{value:.6g}' for value in values)])
