#!/usr/bin/env python
"""Images a second of one loader worker, by pipeline, and where its time goes.

A worker's work on a draw is measured in this process, on one thread: reading a pair from the page
cache, both pipelines as the config has them, seeds, checks and collation. The pictures are drawn
here, of the size and file format of the data set, unless --images names a folder of real ones.
The last columns tell what --rate images a second take.

Examples:
    python benchmarks/data_loading.py
    python benchmarks/data_loading.py --pipelines camvid --images camvid=data/camvid/images/train
    python benchmarks/data_loading.py --pipelines voc cityscapes --rate 480
"""

import argparse
import json
import math
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import cv2
import numpy as np
import torch
from _measure import alternate, machine, say, seconds
from _quiet import add_busy_option, require_quiet
from mmengine.dataset import pseudo_collate
from mmengine.registry import init_default_scope
from mmseg.registry import DATASETS

from mmseg_cct.config.load import load_config
from mmseg_cct.datasets.samplers.pair_sampler import PairDraw
from mmseg_cct.utils.markdown import markdown_table

PROJECT = Path(__file__).resolve().parents[1]


class Source(NamedTuple):
    """A shipped pipeline and what its images are like.

    Attributes:
        config: Below `configs`.
        size: Height and width of the files, in pixels; None where nothing is read.
        suffix: Of the files.
    """

    config: str
    size: tuple[int, int] | None
    suffix: str = '.jpg'


SOURCES = {
    'voc': Source('cct/cct_r50_voc_1464.py', (375, 500)),
    'voc, strong views': Source('plus/cct-plus_r50_voc-field_92.py', (375, 500)),
    'cityscapes': Source('cct/cct_r50_cityscapes_372.py', (1024, 2048), '.png'),
    'cityscapes, shrunk once': Source('cct/cct_r50_cityscapes_372.py', (512, 1024), '.png'),
    'camvid': Source('cct/cct_r50_camvid_50.py', (360, 480)),
    'camvid, strong views': Source('plus/cct-plus_r50_camvid_50.py', (360, 480)),
    'idd_lite': Source('cct/cct_mbv2-jpu_idd-lite_50.py', (227, 320)),
    'folder': Source('cct/cct_r50_folder.py', (768, 1024)),
    'shapes': Source('demo/cct_shapes.py', None),
}
PICTURES = 8


def picture(height: int, width: int, seed: int) -> np.ndarray:
    """Draws shapes over a smooth ground with fine texture: about as hard to code as a photograph.

    Args:
        height: In pixels.
        width: In pixels.
        seed: Of the drawing.

    Returns:
        `(height, width, 3)` uint8.
    """
    rng = np.random.default_rng(seed)
    ground = rng.integers(0, 256, (6, 8, 3), np.uint8)
    image = cv2.resize(ground, (width, height), interpolation=cv2.INTER_CUBIC).astype(np.int16)
    for scale, strength in ((2, 10), (8, 16)):
        texture = rng.normal(0, strength, (height // scale, width // scale)).astype(np.float32)
        image += cv2.resize(texture, (width, height)).astype(np.int16)[..., None]
    image = image.clip(0, 255).astype(np.uint8)
    for _ in range(30):
        centre = rng.integers(0, (width, height)).tolist()
        colour = rng.integers(0, 256, 3).tolist()
        cv2.circle(image, centre, int(rng.integers(4, height // 8)), colour, 2, cv2.LINE_AA)
    return image


def draw_files(folder: Path, source: Source, num_classes: int) -> list[Path]:
    """Writes pictures and their masks.

    Args:
        folder: Gets `images` and `masks`.
        source: What they are like.
        num_classes: Class ids in the masks.

    Returns:
        The images.
    """
    assert source.size is not None
    height, width = source.size
    images = []
    for index in range(PICTURES):
        file = folder / 'images' / f'{index}{source.suffix}'
        file.parent.mkdir(exist_ok=True, parents=True)
        quality = [cv2.IMWRITE_JPEG_QUALITY, 92] if source.suffix == '.jpg' else []
        cv2.imwrite(str(file), picture(height, width, index), quality)
        images.append(file)
    draw_masks(folder, images, num_classes)
    return images


def draw_masks(folder: Path, images: list[Path], num_classes: int) -> None:
    """Writes a mask of the size of each image.

    Args:
        folder: Gets `masks`.
        images: The images.
        num_classes: Class ids from 0 on.
    """
    (folder / 'masks').mkdir()
    for index, file in enumerate(images):
        height, width = cv2.imread(str(file)).shape[:2]
        coarse = np.random.default_rng(index).random((num_classes, 6, 8), np.float32)
        scores = [cv2.resize(layer, (width, height)) for layer in coarse]
        mask = np.argmax(scores, 0).astype(np.uint8)
        cv2.imwrite(str(folder / 'masks' / f'{file.stem}.png'), mask)


def build_dataset(name: str, folder: Path, images: str | None) -> Any:
    """Builds the training set of a config on other files.

    Args:
        name: Of `SOURCES`.
        folder: Where drawn files go.
        images: A folder of real images; None draws them.

    Returns:
        The `SemiSegDataset`.
    """
    source = SOURCES[name]
    config = load_config(str(PROJECT / 'configs' / source.config), {})
    dataset = config.train_dataloader.dataset
    if source.size is None:
        return DATASETS.build(dataset)
    num_classes = config.model.decode_head.num_classes
    if images:
        files = sorted(p for p in Path(images).iterdir() if p.suffix in ('.jpg', '.png'))
        files = files[:PICTURES]
        if not files:
            raise SystemExit(f'error: --images {name}={images}: no .jpg or .png in it')
        folder.mkdir(parents=True, exist_ok=True)
        draw_masks(folder, files, num_classes)
    else:
        files = draw_files(folder, source, num_classes)
    names = folder / 'names.txt'
    names.write_text(''.join(f'{file.stem}\n' for file in files), encoding='utf-8')
    masks = dict(labeled=dict(seg_map_path=str(folder / 'masks')), unlabeled={})
    return DATASETS.build(
        dict(
            type='SemiSegDataset',
            check=False,
            **{
                branch: dict(
                    type='BaseSegDataset',
                    metainfo=dict(classes=[f'class {i}' for i in range(num_classes)]),
                    ann_file=str(names),
                    data_prefix=dict(img_path=str(files[0].parent), **with_masks),
                    img_suffix=files[0].suffix,
                    seg_map_suffix='.png',
                    pipeline=dataset[branch].pipeline,
                )
                for branch, with_masks in masks.items()
            },
        )
    )


class Timed:
    """A transform that adds up its time.

    Args:
        transform: The transform.
        spent: Seconds by name of the transform, added to.
    """

    def __init__(self, transform: Callable, spent: dict[str, float]) -> None:
        self.transform, self.spent = transform, spent
        self.name = type(transform).__name__

    def __call__(self, results: dict) -> Any:
        begin = time.process_time()
        try:
            return self.transform(results)
        finally:
            taken = time.process_time() - begin
            self.spent[self.name] = self.spent.get(self.name, 0.0) + taken


def measure(dataset: Any, batch_size: int, repeats: int) -> dict[str, Any]:
    """Times batches.

    Args:
        dataset: A `SemiSegDataset`.
        batch_size: Pairs in a batch.
        repeats: Batches that are timed.

    Returns:
        `pair`, the median CPU seconds of a pair; `image` of one of its two images, `quartiles` of
        that; `spent`, seconds of a pair by transform, with `rest` for all else.
    """
    spent: dict[str, float] = {}
    for branch in (dataset.labeled, dataset.unlabeled):
        branch.pipeline.transforms = [Timed(t, spent) for t in branch.pipeline.transforms]
    rng = np.random.default_rng(0)
    loads = 0

    def load() -> None:
        nonlocal loads
        loads += 1
        draws = [
            PairDraw(
                labeled=int(rng.integers(len(dataset.labeled))),
                unlabeled=int(rng.integers(len(dataset.unlabeled))),
                labeled_seed=int(rng.integers(2**31)),
                unlabeled_seed=int(rng.integers(2**31)),
            )
            for _ in range(batch_size)
        ]
        pseudo_collate([dataset[draw] for draw in draws])

    load()
    spent.clear()
    loads = 0
    times = alternate(dict(load=load), repeats, 'cpu', warm_up=0)['load']['cpu_times']
    times = [value / batch_size for value in times]
    pairs = loads * batch_size
    by_transform = {name: value / pairs for name, value in spent.items()}
    by_transform['rest'] = max(statistics.mean(times) - sum(by_transform.values()), 0.0)
    pair = statistics.median(times)
    first, third = np.quantile(times, (0.25, 0.75))
    return dict(pair=pair, image=pair / 2, quartiles=(first / 2, third / 2), spent=by_transform)


def parse_args() -> argparse.Namespace:
    """Reads the command line.

    Returns:
        The options.
    """
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument('--pipelines', nargs='+', choices=SOURCES, default=list(SOURCES))
    parser.add_argument(
        '--images', nargs='+', default=[], metavar='PIPELINE=DIR', help='real images'
    )
    parser.add_argument('--batch-size', type=int, default=8, metavar='N', help='pairs')
    parser.add_argument('--repeats', type=int, default=9, help='batches that are timed')
    parser.add_argument(
        '--rate',
        type=float,
        default=480,
        help='images a second that are needed (default: 480, of 8 GPUs with 20 images a step at '
        'three steps a second)',
    )
    parser.add_argument('--json', metavar='FILE', help='where to write all figures')
    add_busy_option(parser)
    options = parser.parse_args()
    options.images = dict(item.partition('=')[::2] for item in options.images)
    if unknown := options.images.keys() - SOURCES.keys():
        parser.error(f'--images {unknown.pop()}: expected PIPELINE=DIR, PIPELINE as in --pipelines')
    return options


def main() -> None:
    """Measures, prints the table, writes the figures."""
    options = parse_args()
    require_quiet(1, options.allow_busy)
    torch.set_num_threads(1)
    cv2.setNumThreads(0)
    init_default_scope('mmseg')
    about = machine('cpu')
    say(markdown_table(['machine', ''], [[key, value] for key, value in about.items()]))
    figures, rows = {}, []
    for name in options.pipelines:
        say(f'  {name}')
        with tempfile.TemporaryDirectory() as folder:
            dataset = build_dataset(name, Path(folder, 'data'), options.images.get(name))
            figures[name] = measure(dataset, options.batch_size, options.repeats)
        row = figures[name]
        shares = sorted(row['spent'].items(), key=lambda item: -item[1])
        size = SOURCES[name].size
        kind = 'drawn scenes' if size is None else f'{size[0]}×{size[1]} {SOURCES[name].suffix}'
        if name in options.images:
            kind = f'those of {options.images[name]}'
        rows.append(
            [
                name,
                kind,
                f'{1 / row["image"]:.0f} ({1 / row["quartiles"][1]:.0f}–'
                f'{1 / row["quartiles"][0]:.0f})',
                seconds(row['pair']),
                ', '.join(f'{key} {value / row["pair"]:.0%}' for key, value in shares[:5]),
                str(math.ceil(options.rate * row['image'])),
            ]
        )
    columns = [
        'pipeline',
        'files',
        'images a second of a worker',
        'a pair',
        'of that',
        f'workers for {options.rate:.0f} images a second',
    ]
    say(f'\n### Loading images\n\n{markdown_table(columns, rows)}')
    if options.json:
        results = dict(machine=about, pipelines=figures)
        Path(options.json).write_text(json.dumps(results, indent=1), encoding='utf-8')


if __name__ == '__main__':
    main()
