"""Measures the start-up time and memory of a long list of unlabelled images.

Each measurement runs in a forked process, so that it sees its own memory only:

- `list`: a `SemiSegDataset` with N unlabelled names and the checks off; there are no images.
- `check`: the same with the checks on and M files, links to real images. The checks read the header
  of every unlabelled image, the second time from the page cache.

Example:
    python benchmarks/dataset_start.py --images data/camvid/images/train --files 50000
"""

import argparse
import os
import resource
import tempfile
import time
from collections.abc import Callable
from multiprocessing import get_context
from pathlib import Path

import numpy as np
from _measure import MIB, machine
from _quiet import add_busy_option, require_quiet
from mmengine.logging import MMLogger
from mmengine.registry import init_default_scope
from PIL import Image

from mmseg_cct.datasets import PairSampler, SemiSegDataset


def make_dataset(root: Path, count: int, check: bool) -> SemiSegDataset:
    """Builds a set of one labelled image and a list of unlabelled ones.

    Args:
        root: Folder with `images/`, `masks/`, `labeled.txt` and `unlabeled.txt`.
        count: Length of the unlabelled list, which is written here.
        check: Whether to validate all files.

    Returns:
        The data set.
    """
    (root / 'unlabeled.txt').write_text(
        ''.join(f'part{i // 1000:05d}/{i:09d}\n' for i in range(count))
    )
    common = dict(
        type='BaseSegDataset',
        data_root=str(root),
        pipeline=[],
        metainfo=dict(classes=('background', 'object')),
    )
    return SemiSegDataset(
        dict(
            ann_file='labeled.txt',
            data_prefix=dict(img_path='images', seg_map_path='masks'),
            **common,
        ),
        dict(ann_file='unlabeled.txt', data_prefix=dict(img_path='images'), **common),
        check=check,
    )


def measure(root: Path, count: int, check: bool) -> dict[str, float]:
    """Builds the set and draws once from it.

    Args:
        root: As in `make_dataset`.
        count: As in `make_dataset`.
        check: As in `make_dataset`.

    Returns:
        Wall and CPU seconds (all threads) to build; MiB of the serialised list; MiB of the process
        above its start, at its peak and afterwards; seconds of the first draw, which permutes the
        whole set.
    """
    before = _resident()
    start, cpu_start = time.perf_counter(), time.process_time()
    dataset = make_dataset(root, count, check)
    built, cpu_built = time.perf_counter(), time.process_time()
    PairSampler(dataset, seed=0).draw(0)
    drawn = time.perf_counter()
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    unlabeled = dataset.unlabeled
    return dict(
        build_seconds=built - start,
        cpu_seconds=cpu_built - cpu_start,
        serialised_mib=(unlabeled.data_bytes.nbytes + unlabeled.data_address.nbytes) / MIB,
        peak_mib=(peak - before) / MIB,
        afterwards_mib=(_resident() - before) / MIB,
        first_draw_seconds=drawn - built,
    )


def _resident() -> int:
    pages = int(Path('/proc/self/statm').read_text().split()[1])
    return pages * os.sysconf('SC_PAGE_SIZE')


def _prepare(root: Path, images: list[Path]) -> None:
    """Writes one labelled pair, and a link to one of the images for every unlabelled name."""
    for folder in ('images', 'masks'):
        (root / folder).mkdir()
    Image.fromarray(np.zeros((8, 8, 3), np.uint8)).save(root / 'images' / 'labeled.jpg')
    Image.fromarray(np.zeros((8, 8), np.uint8)).save(root / 'masks' / 'labeled.png')
    (root / 'labeled.txt').write_text('labeled\n')
    for index, image in enumerate(images):
        link = root / 'images' / f'part{index // 1000:05d}' / f'{index:09d}.jpg'
        link.parent.mkdir(exist_ok=True)
        link.symlink_to(image.resolve())


def in_a_process(function: Callable[..., dict[str, float]], *args: object) -> dict[str, float]:
    """Calls a function in a forked process, whose memory counts from the fork."""
    with get_context('fork').Pool(1) as pool:
        return pool.apply(function, args)


def main() -> None:
    """Measures what the command line asks for and prints it."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument('--names', type=int, default=1_000_000, help='N, names without files')
    parser.add_argument('--files', type=int, default=2000, help='M, files that the checks open')
    parser.add_argument('--images', metavar='DIR', help='real images; without them no check')
    add_busy_option(parser)
    args = parser.parse_args()
    require_quiet(1, args.allow_busy)

    init_default_scope('mmseg')
    MMLogger.get_current_instance().setLevel('ERROR')
    for name, value in machine('cpu').items():
        print(f'{name}: {value}')
    runs = [('list', args.names, False, [])]
    if args.images:
        found = sorted(Path(args.images).glob('*.jpg'))
        linked = [found[index % len(found)] for index in range(args.files)]
        runs += [(f'check, {which} time', args.files, True, linked) for which in ('1st', '2nd')]
    with tempfile.TemporaryDirectory() as folder:
        for title, count, check, images in runs:
            root = Path(folder, title.split(',')[0])
            if not root.exists():
                root.mkdir()
                _prepare(root, images)
            figures = in_a_process(measure, root, count, check)
            print(
                f'{title}: {count} names, '
                + ', '.join(f'{name} {value:.3g}' for name, value in figures.items())
            )


if __name__ == '__main__':
    main()
