#!/usr/bin/env python
"""Images a second of tools/predict.py and of MMSegmentation's MMSegInferencer, by turns.

Both segment the same images with one model and write a mask and an overlay of each. Loading the
model is not counted.

Example:
    python benchmarks/predict.py CONFIG CHECKPOINT photos --images 40
"""

import contextlib
import io
import tempfile
from argparse import Namespace
from itertools import islice
from pathlib import Path

from _measure import alternate, begin, benchmark_parser, quotient, save, say_table, time_cells
from mmseg.apis import MMSegInferencer

from mmseg_cct.apis import prediction
from mmseg_cct.utils.image_files import find_images


def measure(options: Namespace, folder: Path) -> dict:
    """Times both on the images of a folder; each turn writes into a new one."""
    images = sorted(str(path.resolve()) for path in folder.iterdir())
    load_model = prediction.load_model
    config = prediction.load_config(options.config, {})
    model = load_model(config, options.checkpoint, options.device)
    inferencer = MMSegInferencer(options.config, options.checkpoint, device=options.device)
    inferencer.show_progress = False

    def ours() -> None:
        with tempfile.TemporaryDirectory() as out:
            prediction.predict_images(
                options.config, options.checkpoint, str(folder), f'{out}/new', device=options.device
            )

    def theirs() -> None:
        with tempfile.TemporaryDirectory() as out, contextlib.redirect_stdout(io.StringIO()):
            inferencer(images, out_dir=out, return_datasamples=False)

    prediction.load_model = lambda *_: model  # it is not counted
    try:
        return alternate(
            {'predict': ours, 'MMSegInferencer': theirs}, options.repeats, options.device
        )
    finally:
        prediction.load_model = load_model


def main() -> None:
    """Prints a row for each."""
    parser = benchmark_parser(__doc__, repeats=5, threads=1, devices=True)
    parser.add_argument('config')
    parser.add_argument('checkpoint')
    parser.add_argument('folder', help='of images')
    parser.add_argument('--images', type=int, default=40, help='how many of them (default: 40)')
    options = parser.parse_args()
    options.device = options.device or 'cpu'
    results = begin(options)
    with tempfile.TemporaryDirectory() as place:
        chosen = list(islice(find_images(options.folder).values(), options.images))
        for index, path in enumerate(chosen):
            Path(place, f'{index:05d}{path.suffix}').symlink_to(path.resolve())
        times = measure(options, Path(place))
    base = times['predict']
    rows = [
        [
            ('', name),
            ('images a second', f'{quotient(len(chosen), found["median"]):.2f}'),
            *time_cells(f'{len(chosen)} images', found, base, 'to predict'),
        ]
        for name, found in times.items()
    ]
    say_table('Masks and overlays of a folder', rows)
    save(options, {**results, 'times': times})


if __name__ == '__main__':
    main()
