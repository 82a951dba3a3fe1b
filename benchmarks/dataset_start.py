"""Measures the start-up time and memory of a long list of unlabelled images.

Each measurement runs in a forked process, so that it sees only its own memory:

- `list`: a `SemiSegDataset` with N unlabelled names and the checks off; there are no images.
- `check`: the same with the checks on and M files, links to real images. The checks read the header
  of every unlabelled image, the second time from the page cache.

The set is built, then drawn from once, which permutes all of it. Columns: wall and CPU seconds
(all threads), MiB of the serialised list, and MiB of the process above its start.

Example:
    python benchmarks/dataset_start.py --images data/camvid/images/train --files 50000
"""

import tempfile
import time
from multiprocessing import get_context
from pathlib import Path

import cv2
import numpy as np
from _measure import MIB, begin, benchmark_parser, process_peak, resident, save, say_table
from mmengine.logging import MMLogger

from mmseg_cct.datasets import PairSampler, SemiSegDataset
from mmseg_cct.preflight.files import check_pairs


def make_dataset(root: Path, count: int, check: bool) -> SemiSegDataset:
    """Builds a set of one labelled image and a list of unlabelled ones.

    Args:
        root: Folder with `images/`, `masks/`, `labeled.txt` and `unlabeled.txt`.
        count: Length of the unlabelled list, which is written here.
        check: Whether to validate all files.
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
    labeled, unlabeled = dict(img_path='images', seg_map_path='masks'), dict(img_path='images')
    pairs = SemiSegDataset(
        dict(ann_file='labeled.txt', data_prefix=labeled, **common),
        dict(ann_file='unlabeled.txt', data_prefix=unlabeled, **common),
    )
    if check:
        check_pairs(pairs)
    return pairs


def measure(root: Path, count: int, check: bool) -> dict[str, float]:
    """Builds the set and draws from it; arguments as in `make_dataset`."""
    before = resident()
    start, cpu_start = time.perf_counter(), time.process_time()
    dataset = make_dataset(root, count, check)
    built, cpu_built = time.perf_counter(), time.process_time()
    PairSampler(dataset, seed=0).draw(0)
    drawn = time.perf_counter()
    unlabeled = dataset.unlabeled
    return {
        'seconds': built - start,
        'CPU seconds': cpu_built - cpu_start,
        'the list, MiB': (unlabeled.data_bytes.nbytes + unlabeled.data_address.nbytes) / MIB,
        'peak, MiB': (process_peak() - before) / MIB,
        'afterwards, MiB': (resident() - before) / MIB,
        'first draw, seconds': drawn - built,
    }


def _prepare(root: Path, images: list[Path]) -> None:
    """Writes one labelled pair, and a link to one of the images for every unlabelled name."""
    for folder, shape in (('images', (8, 8, 3)), ('masks', (8, 8))):
        (root / folder).mkdir(parents=True)
        suffix = '.jpg' if folder == 'images' else '.png'
        cv2.imwrite(str(root / folder / f'labeled{suffix}'), np.zeros(shape, np.uint8))
    (root / 'labeled.txt').write_text('labeled\n')
    for index, image in enumerate(images):
        link = root / 'images' / f'part{index // 1000:05d}' / f'{index:09d}.jpg'
        link.parent.mkdir(exist_ok=True)
        link.symlink_to(image.resolve())


def main() -> None:
    """Measures what the command line asks for and prints it."""
    parser = benchmark_parser(__doc__)
    parser.add_argument('--names', type=int, default=1_000_000, help='N, names without files')
    parser.add_argument('--files', type=int, default=2000, help='M, files that the checks open')
    parser.add_argument('--images', metavar='DIR', help='real images; needed for `check`')
    options = parser.parse_args()
    results = begin(options)
    MMLogger.get_current_instance().setLevel('ERROR')
    runs = [('list', options.names, False, [])]
    if options.images:
        found = sorted(Path(options.images).glob('*.jpg'))
        linked = [found[index % len(found)] for index in range(options.files)]
        runs += [(f'check, {which} time', options.files, True, linked) for which in ('1st', '2nd')]
    with tempfile.TemporaryDirectory() as folder:
        for title, count, check, images in runs:
            root = Path(folder, title.split(',')[0])
            if not root.exists():
                _prepare(root, images)
            with get_context('fork').Pool(1) as pool:  # its memory counts from the fork
                results[title] = pool.apply(measure, (root, count, check))
    say_table(
        'The start of a training',
        [
            [('', title), ('names', str(count))]
            + [(name, f'{value:.3g}') for name, value in results[title].items()]
            for title, count, _, _ in runs
        ],
    )
    save(options, results)


if __name__ == '__main__':
    main()
