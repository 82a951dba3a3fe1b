"""Looks for low density on class boundaries: the cluster assumption, section 3.1 of the paper.

Density is judged by the mean distance of a location to its 8 neighbors, on 20×20 patches of the
image and on hidden features upsampled to its size. Printed is the ratio of this distance on class
boundaries to that inside classes, over all images: the larger, the better the assumption holds. The
maps of the first images are in work_dirs/examples/clusters.png, dark where the distance is large.

Usage: python examples/7_cluster_assumption.py [RUN] [--checkpoint FILE] [--layers NAME ...]
    Without RUN, a work directory or a config, it takes the CCT of examples/1_train.py.
"""

import argparse
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F
from matplotlib.figure import Figure
from mmengine.dataset import pseudo_collate

import mmseg_cct.plugin  # noqa: F401 (registers the components)
from mmseg_cct.apis.run import Run
from mmseg_cct.datasets.files.images import as_rgb
from mmseg_cct.engine.visualization import paint

HERE = Path('work_dirs/examples')
PATCHES, PATCH_SIZE = '20×20 patches', 20
BOUNDARY_WIDTH = 5  # a boundary has two classes within this many pixels


def neighbor_distance(features: torch.Tensor, patch_size: int = 1) -> torch.Tensor:
    """Mean Euclidean distance `(H, W)` between each patch of a map `(D, H, W)` and its 8 neighbors.

    A squared distance of patches sums squared differences over them: a box filter computes all.
    """
    height, width = features.shape[1:]
    total, count = torch.zeros(2, height, width, device=features.device)
    for dy, dx in ((0, 1), (1, -1), (1, 0), (1, 1)):  # the other four are the same distances
        first = slice(0, height - dy), slice(max(-dx, 0), width - max(dx, 0))
        second = slice(dy, height), slice(max(dx, 0), width + min(dx, 0))
        difference = features[(slice(None), *first)] - features[(slice(None), *second)]
        squares = difference.square().sum(0)
        if patch_size > 1:
            padding = dict(padding=patch_size // 2, count_include_pad=False)
            squares = F.avg_pool2d(squares[None], patch_size, 1, **padding)[0] * patch_size**2
            squares = squares[: height - dy, : width - abs(dx)]
        for ends in (first, second):
            total[ends] += squares.sqrt()
            count[ends] += 1
    return total / count


def class_regions(labels: torch.Tensor, width: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Masks `(H, W)` of class boundaries and of the inside of classes.

    Within ±`width` pixels, a boundary has two classes, an inside one class and no ignored pixel.
    """

    def highest(values: torch.Tensor) -> torch.Tensor:
        return F.max_pool2d(values[None], 2 * width + 1, stride=1, padding=width)[0]

    ignored, ids = labels == 255, labels.double()
    largest = highest(ids.masked_fill(ignored, -torch.inf))
    smallest = -highest((-ids).masked_fill(ignored, -torch.inf))
    return largest > smallest, (largest == smallest) & (highest(ignored.double()) == 0)


parser = argparse.ArgumentParser()
parser.add_argument('run', nargs='?', default=HERE / 'cct')
parser.add_argument('--checkpoint')
parser.add_argument('--layers', nargs='+', default=['neck', 'backbone'])
parser.add_argument('--num-images', type=int, default=24)
args = parser.parse_args()

run = Run.open(args.run, args.checkpoint)
model, dataset = run.load_model(), run.test_loader.dataset
outputs = {}
for name in args.layers:
    keep = lambda _, __, output, name=name: outputs.update({name: output})  # noqa: E731
    model.get_submodule(name).register_forward_hook(keep)

sums, pictures = {}, []
# evenly spaced: neighbors in a set are often frames of one video
indices = np.linspace(0, len(dataset) - 1, min(args.num_images, len(dataset)))
for index in indices.round().astype(int):
    item = dataset[index]
    image, ids = item['inputs'], item['data_samples'].gt_sem_seg.data
    height, width = image.shape[1:]
    labels = F.interpolate(ids[None].float(), (height, width), mode='nearest-exact')[0, 0].long()
    regions = class_regions(labels, BOUNDARY_WIDTH)
    maps = {PATCHES: neighbor_distance(image.float() / 255, PATCH_SIZE)}
    with torch.no_grad():
        batch = model.data_preprocessor(pseudo_collate([item]), training=False)
        model(batch['inputs'], batch['data_samples'], mode='tensor')
        for name in args.layers:
            features = outputs[name]
            while isinstance(features, (tuple, list)):
                features = features[-1]  # of a backbone's stages the last, which the heads see
            size = batch['inputs'].shape[2:]  # padded right and below
            features = F.interpolate(features.float(), size, mode='bilinear')[0]
            maps[name] = neighbor_distance(features)[:height, :width].cpu()
    for name, distances in maps.items():
        parts = [distances[region].double() for region in regions]
        # of all images: a mean of ratios would weigh one with hardly any boundary as the others
        sums[name] = sums.get(name, 0) + np.array([(part.sum(), len(part)) for part in parts])
    if len(pictures) < 4:
        rgb = as_rgb(image.numpy().transpose(1, 2, 0))
        painted = paint(labels.numpy(), dataset.metainfo['palette'])
        pictures.append(dict(image=rgb, labels=painted, **maps))

for name, ((on_boundary, num_boundary), (inside, num_inside)) in sums.items():
    print(f'{name}: boundary / inside {on_boundary / num_boundary / (inside / num_inside):.2f}')

figure = Figure(figsize=(3 * len(pictures[0]), 3 * len(pictures)), layout='constrained')
grid = figure.subplots(len(pictures), len(pictures[0]), squeeze=False)
for row, panels in zip(grid, pictures):
    for axes, (name, values) in zip(row, panels.items()):
        low, high = np.percentile(values, [1, 99])  # without outliers
        axes.imshow(values, cmap='gray_r', vmin=low, vmax=high)  # a photo has colors of its own
        axes.set(xticks=[], yticks=[], title=name)
HERE.mkdir(parents=True, exist_ok=True)
figure.savefig(HERE / 'clusters.png')
print(f'maps in {HERE / "clusters.png"}')
