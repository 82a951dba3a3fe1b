#!/usr/bin/env python
"""CPU time and peak memory of a start with many images: new_config, and train's first iteration.

The images are hard links of small PNGs, in folders of a thousand; 200 have masks. Files are in the
page cache, as they were just written.

Examples:
    python benchmarks/many_images.py --images 100000
    python benchmarks/many_images.py --images 1000000 --folder /mnt/fast
"""

import argparse
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
from PIL import Image

_LINKS = 20_000  # of a file; ext4 allows 65,000
_LABELLED, _SIDE = 200, 64


def make_folder(data: Path, number: int) -> None:
    """Writes `number` images, and masks of the first ones."""
    rng = np.random.default_rng(0)
    for kind in ('images', 'masks', 'sources'):
        (data / kind).mkdir(parents=True)
    for index in range(_LABELLED + number // _LINKS + 1):
        pixels = rng.integers(0, rng.integers(2, 256), (_SIDE, _SIDE, 3), np.uint8)  # of any size
        Image.fromarray(pixels).save(data / f'sources/{index}.png')
    for index in range(number):
        if index % 1000 == 0:
            (data / f'images/{index // 1000:04}').mkdir()
        source = index if index < _LABELLED else _LABELLED + index // _LINKS
        name = f'{index // 1000:04}/{index:07}.png'
        os.link(data / f'sources/{source}.png', data / 'images' / name)
        if index < _LABELLED:
            mask = data / 'masks' / name
            mask.parent.mkdir(exist_ok=True)
            Image.fromarray(rng.integers(0, 2, (_SIDE, _SIDE), np.uint8)).save(mask)


def measure(name: str, number: int, *command: str, folder: Path) -> None:
    """Runs a tool and prints a row of a table; memory is that of the largest process."""
    environment = {**os.environ, 'OMP_NUM_THREADS': '1'}
    begun, before = time.perf_counter(), resource.getrusage(resource.RUSAGE_CHILDREN)
    tool = [sys.executable, '-m', 'mmseg_cct', *command]
    done = subprocess.run(tool, cwd=folder, env=environment, capture_output=True, text=True)
    if done.returncode:
        sys.exit(done.stdout + done.stderr)
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    seconds = used.ru_utime + used.ru_stime - before.ru_utime - before.ru_stime
    wall = time.perf_counter() - begun
    memory = used.ru_maxrss / 2**20
    print(f'| {name} | {number} | {seconds:.1f} | {wall:.0f} | {memory:.2f} |', flush=True)


def main() -> None:
    """Makes the folder, and measures both tools."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument('--images', type=int, nargs='+', default=[100_000])
    parser.add_argument('--folder', help='where the images are made (default: that of temp files)')
    args = parser.parse_args()
    print('| | images | CPU s | wall s | peak GiB |\n| --- | ---: | ---: | ---: | ---: |')
    for number in args.images:
        with tempfile.TemporaryDirectory(dir=args.folder) as name:
            folder = Path(name)
            make_folder(folder / 'many', number)
            new = 'new-config many --classes a b --from-scratch --iters 1 --batch-size 2 --out .'
            measure('new_config', number, *new.split(), folder=folder)
            loaders = [f'{split}_dataloader.num_workers=0' for split in ('train', 'val')]
            fixed = [f'{split}_dataloader.persistent_workers=False' for split in ('train', 'val')]
            options = '--work-dir', 'work', '--cfg-options', *loaders, *fixed
            train = 'train', 'cct-strong_mbv2_many.py', *options, 'train_cfg.val_interval=9'
            measure('train, one iteration', number, *train, folder=folder)


if __name__ == '__main__':
    main()
