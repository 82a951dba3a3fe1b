#!/usr/bin/env python
"""Images a second of one loader worker, by pipeline, and where its time goes.

A worker's work on a draw is measured in this process, on one thread: reading a pair from the page
cache, both pipelines of the config, seeds, checks and collation. The images are drawn here, with
the size and file format of the data set, unless --images names a folder of real ones. The last
column gives the workers that --rate images a second need.

Examples:
    python benchmarks/data_loading.py
    python benchmarks/data_loading.py --pipelines camvid --images camvid=data/camvid/images/train
    python benchmarks/data_loading.py --pipelines voc cityscapes --rate 480
"""

import argparse
import math
import statistics
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import cv2
import numpy as np
from _measure import alternate, begin, benchmark_parser, save, say, say_table, seconds
from mmengine.dataset import pseudo_collate
from mmseg.registry import DATASETS

from mmseg_cct.config.load import load_config
from mmseg_cct.datasets.samplers.pair_sampler import PairDraw


class Source(NamedTuple):
    """A shipped pipeline and what its images are like.

    Attributes:
        config: A setting.
        size: Height and width of the files, in pixels; None if no files are read.
        suffix: Suffix of the files.
        method: Method to train the setting with.
    """

    config: str
    size: tuple[int, int] | None
    suffix: str = '.jpg'
    method: str = 'cct'


SOURCES = {
    'voc': Source('cct/cct_r50_voc_1464', (375, 500)),
    'voc, strong views': Source('cct/cct_r50_voc_1464', (375, 500), method='cct-plus'),
    'cityscapes': Source('cct/cct_r50_cityscapes_372', (1024, 2048), '.png'),
    'cityscapes, shrunk once': Source('cct/cct_r50_cityscapes_372', (512, 1024), '.png'),
    'camvid': Source('cct/cct_r50_camvid_50', (360, 480)),
    'camvid, strong views': Source('cct/cct_r50_camvid_50', (360, 480), method='cct-plus'),
    'idd_lite': Source('cct/cct_mbv2-jpu_idd-lite_100', (227, 320)),
    'folder': Source('cct/cct_r50_folder', (768, 1024)),
    'shapes': Source('demo/cct_shapes', None),
}
PICTURES = 8


def picture(height: int, width: int, seed: int) -> np.ndarray:
    """Draws shapes on a smooth ground with fine texture, about as hard to encode as a photograph.

    Args:
        height: Height in pixels.
        width: Width in pixels.
        seed: Seed of the drawing.

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


def draw_images(folder: Path, source: Source) -> list[Path]:
    """Writes pictures with the size and format of a data set."""
    assert source.size is not None
    folder.mkdir()
    quality = [cv2.IMWRITE_JPEG_QUALITY, 92] if source.suffix == '.jpg' else []
    images = [folder / f'{index}{source.suffix}' for index in range(PICTURES)]
    for index, file in enumerate(images):
        cv2.imwrite(str(file), picture(*source.size, index), quality)
    return images


def draw_masks(folder: Path, images: list[Path], num_classes: int) -> None:
    """Writes a mask in the size of each image, with class ids counted from 0."""
    folder.mkdir()
    for index, file in enumerate(images):
        height, width = cv2.imread(str(file)).shape[:2]
        coarse = np.random.default_rng(index).random((num_classes, 6, 8), np.float32)
        scores = [cv2.resize(layer, (width, height)) for layer in coarse]
        cv2.imwrite(str(folder / f'{file.stem}.png'), np.argmax(scores, 0).astype(np.uint8))


def build_dataset(name: str, folder: Path, images: str | None) -> Any:
    """Builds the training set of a config with other files.

    Args:
        name: Key of `SOURCES`.
        folder: Folder for drawn files.
        images: A folder of real images; None draws them.

    Returns:
        The `SemiSegDataset`.
    """
    source = SOURCES[name]
    config = load_config(source.config, dict(method=source.method))
    dataset = config.train_dataloader.dataset
    if source.size is None:
        return DATASETS.build(dataset)
    if images:
        files = sorted(p for p in Path(images).iterdir() if p.suffix in ('.jpg', '.png'))
        files = files[:PICTURES]
        if not files:
            raise SystemExit(f'error: --images {name}={images}: no .jpg or .png in it')
    else:
        files = draw_images(folder / 'images', source)
    num_classes = config.model.decode_head.num_classes
    draw_masks(folder / 'masks', files, num_classes)
    names = folder / 'names.txt'
    names.write_text(''.join(f'{file.stem}\n' for file in files), encoding='utf-8')

    def branch(kind: str, **masks: str) -> dict:
        return dict(
            type='BaseSegDataset',
            metainfo=dict(classes=[f'class {i}' for i in range(num_classes)]),
            ann_file=str(names),
            data_prefix=dict(img_path=str(files[0].parent), **masks),
            img_suffix=files[0].suffix,
            seg_map_suffix='.png',
            pipeline=dataset[kind].pipeline,
        )

    labeled, unlabeled = branch('labeled', seg_map_path=str(folder / 'masks')), branch('unlabeled')
    return DATASETS.build(
        dict(
            type='SemiSegDataset',
            labeled=labeled,
            unlabeled=unlabeled,
            strong_views=dataset.get('strong_views'),
        )
    )


class Timed:
    """A transform that adds up its time.

    Args:
        transform: The transform.
        spent: Seconds by name of the transform, which this one adds to.
    """

    def __init__(self, transform: Callable, spent: Counter[str]) -> None:
        self.transform, self.spent = transform, spent

    def __call__(self, results: dict) -> Any:
        begin = time.process_time()
        try:
            return self.transform(results)
        finally:
            self.spent[type(self.transform).__name__] += time.process_time() - begin


def measure(dataset: Any, batch_size: int, repeats: int) -> dict[str, Any]:
    """Times the loading of batches.

    Args:
        dataset: A `SemiSegDataset`.
        batch_size: Pairs in a batch.
        repeats: Number of batches to time.

    Returns:
        `pair`, the median CPU seconds per pair; `image`, those of one of its two images, and their
        `quartiles`; `spent`, seconds per pair by transform, with `rest` for everything else.
    """
    spent: Counter[str] = Counter()
    for branch in (dataset.labeled, dataset.unlabeled):
        branch.pipeline.transforms = [Timed(t, spent) for t in branch.pipeline.transforms]
    rng = np.random.default_rng(0)
    pairs = 0

    def load() -> None:
        nonlocal pairs
        pairs += batch_size
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
    pairs = 0
    taken = alternate(dict(load=load), repeats, 'cpu', warm_up=0)['load']['cpu_times']
    times = [value / batch_size for value in taken]
    by_transform = {name: value / pairs for name, value in spent.items()}
    by_transform['rest'] = max(statistics.mean(times) - sum(by_transform.values()), 0.0)
    pair = statistics.median(times)
    first, third = np.quantile(times, (0.25, 0.75))
    return dict(pair=pair, image=pair / 2, quartiles=(first / 2, third / 2), spent=by_transform)


def parse_args() -> argparse.Namespace:
    """Reads the command line."""
    parser = benchmark_parser(__doc__, repeats=9)
    parser.add_argument('--pipelines', nargs='+', choices=SOURCES, default=list(SOURCES))
    parser.add_argument(
        '--images', nargs='+', default=[], metavar='PIPELINE=DIR', help='folder of real images'
    )
    parser.add_argument('--batch-size', type=int, default=8, metavar='N', help='pairs per batch')
    parser.add_argument(
        '--rate',
        type=float,
        default=480,
        help='images a second that are needed (default: 480, for 8 GPUs with 20 images a step at '
        'three steps a second)',
    )
    options = parser.parse_args()
    options.images = dict(item.partition('=')[::2] for item in options.images)
    if unknown := options.images.keys() - SOURCES.keys():
        parser.error(f'--images {unknown.pop()}: expected PIPELINE=DIR, PIPELINE as in --pipelines')
    return options


def main() -> None:
    """Measures, prints the table, writes the figures."""
    options = parse_args()
    results = begin(options)
    cv2.setNumThreads(0)
    figures, rows = {}, []
    for name in options.pipelines:
        say(f'  {name}')
        with tempfile.TemporaryDirectory() as folder:
            dataset = build_dataset(name, Path(folder), options.images.get(name))
            figures[name] = row = measure(dataset, options.batch_size, options.repeats)
        shares = sorted(row['spent'].items(), key=lambda item: -item[1])
        size = SOURCES[name].size
        files = 'drawn scenes' if size is None else f'{size[0]}×{size[1]} {SOURCES[name].suffix}'
        if name in options.images:
            files = f'those of {options.images[name]}'
        best, worst = (1 / value for value in row['quartiles'])
        rows.append(
            [
                ('pipeline', name),
                ('files', files),
                (
                    'images a second of a worker',
                    f'{1 / row["image"]:.0f} ({worst:.0f}–{best:.0f})',
                ),
                ('a pair', seconds(row['pair'])),
                (
                    'of that',
                    ', '.join(f'{key} {value / row["pair"]:.0%}' for key, value in shares[:5]),
                ),
                (
                    f'workers for {options.rate:.0f} images a second',
                    str(math.ceil(options.rate * row['image'])),
                ),
            ]
        )
    say_table('Loading images', rows)
    save(options, results | dict(pipelines=figures))


if __name__ == '__main__':
    main()
