#!/usr/bin/env python
"""Times how pseudo labels are made: the CRF on one core, and everything with 1, 2, ... workers.

Without a GPU, every worker computes maps and CRF of its images. A rate is that of the middle half
of the images, when all workers are running and none has run out of work. Run it on a quiet machine
with OMP_NUM_THREADS=1.

Example:
    OMP_NUM_THREADS=1 python benchmarks/pseudo_labels.py configs/weak/cam_mbv2_camvid.py CHECKPOINT
"""

import tempfile
import time
from pathlib import Path

import torch
from _measure import begin, benchmark_parser, say

from mmseg_cct.cli.arguments import at_least
from mmseg_cct.cli.errors import user_errors_as_one_line
from mmseg_cct.config.load import load_config
from mmseg_cct.pseudo_labels.cam import load_classifier
from mmseg_cct.pseudo_labels.crf import refined_labels
from mmseg_cct.pseudo_labels.settings import read_settings
from mmseg_cct.pseudo_labels.writer import LABELS, label_tasks, write_pseudo_labels
from mmseg_cct.utils.image_counts import SharedImages
from mmseg_cct.utils.image_files import read_image


def main() -> None:
    """Prints the rates."""
    parser = benchmark_parser(__doc__, json_file=False)
    parser.add_argument('config')
    parser.add_argument('checkpoint')
    parser.add_argument('--images', type=at_least(4), default=32, help='how many (default: 32)')
    parser.add_argument(
        '--workers', type=int, nargs='+', default=[1, 2, 1, 2], help='(default: %(default)s)'
    )
    args = parser.parse_args()
    args.threads = max(args.workers)
    begin(args)
    torch.set_num_threads(1)
    with user_errors_as_one_line():
        config = load_config(args.config, {})
        settings = read_settings(config)
        model = load_classifier(config, args.checkpoint, 'cpu')
    step = max(len(settings.images) // args.images, 1)
    images = settings.images[::step][: args.images]

    batch = [(image, read_image(image.path)) for image in images[:4]]
    list(label_tasks(model, settings, batch, '', with_crf=True))  # torch prepares its kernels
    start = time.perf_counter()
    tasks = list(label_tasks(model, settings, batch, '', with_crf=True))
    maps = time.perf_counter()
    for task in tasks:
        refined_labels(
            task.image, task.maps, task.label_ids, task.background, task.thresholds, settings.crf
        )
    crf = time.perf_counter()
    say(f'one core, seconds an image: maps {(maps - start) / 4:.3f}, CRF {(crf - maps) / 4:.3f}')

    for workers in args.workers:
        with tempfile.TemporaryDirectory() as out:
            write_pseudo_labels(
                model, settings, SharedImages(images), out, workers=workers, batch_size=2
            )
            times = sorted(path.stat().st_mtime for path in Path(out, LABELS).rglob('*.png'))
        first, last = len(times) // 4, 3 * len(times) // 4
        rate = (last - first) / (times[last] - times[first])
        say(f'{workers} workers: {rate:.2f} images/s')


if __name__ == '__main__':
    main()
