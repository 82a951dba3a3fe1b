#!/usr/bin/env python
"""Images a second of tools/predict.py and tools/test.py, and of MMSegmentation's own.

MMSegInferencer and `predict` segment the same images with one model and write a mask and an overlay
of each. With `--test`, MMSegmentation's hooks and metric and those of `test` also evaluate the
first images of the config's test set. Both take turns. Loading the model is not counted.

Examples:
    python benchmarks/predict.py CONFIG CHECKPOINT photos --images 40
    python benchmarks/predict.py CONFIG CHECKPOINT photos --images 40 --test
"""

import contextlib
import copy
import io
import tempfile
from argparse import Namespace
from itertools import islice
from pathlib import Path

from _measure import alternate, begin, benchmark_parser, quotient, save, say_table, time_cells
from mmengine.runner import Runner
from mmseg.apis import MMSegInferencer

from mmseg_cct.apis import prediction
from mmseg_cct.apis.test import prepare_test
from mmseg_cct.utils.image_files import find_images

# The default hooks of MMSegmentation's configs
MMSEG = dict(
    timer='IterTimerHook',
    logger='LoggerHook',
    param_scheduler='ParamSchedulerHook',
    checkpoint='CheckpointHook',
    sampler_seed='DistSamplerSeedHook',
    visualization='SegVisualizationHook',
)


def measure(options: Namespace, folder: Path) -> dict:
    """Times both on the images of a folder; each turn writes into a new folder."""
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

    prediction.load_model = lambda *_: model  # loading is not counted
    try:
        return alternate(
            {'predict': ours, 'MMSegInferencer': theirs}, options.repeats, options.device
        )
    finally:
        prediction.load_model = load_model


def measure_tests(options: Namespace, folder: Path) -> dict:
    """Times both on the first images of the config's test set; `folder` is for their logs."""
    config = prepare_test(
        options.config,
        options.checkpoint,
        work_dir=str(folder / 'ours'),
        options={
            'test_dataloader.num_workers': 0,
            'test_dataloader.persistent_workers': False,
            'test_dataloader.dataset.indices': options.images,
        },
    )
    plain = copy.deepcopy(config)
    plain.work_dir = str(folder / 'theirs')
    plain.custom_hooks = []
    plain.default_hooks = {name: dict(type=hook) for name, hook in MMSEG.items()}
    plain.test_evaluator = dict(type='IoUMetric', iou_metrics=['mIoU'])
    runners = {'test': Runner.from_cfg(config), "MMSegmentation's": Runner.from_cfg(plain)}
    return alternate(
        {name: runner.test for name, runner in runners.items()}, options.repeats, options.device
    )


def say_times(title: str, images: int, times: dict) -> None:
    """Prints a row for each; ratios are to the first."""
    base = next(iter(times.values()))
    rows = [
        [
            ('', name),
            ('images a second', f'{quotient(images, found["median"]):.2f}'),
            *time_cells(f'{images} images', found, base, f'over `{next(iter(times))}`'),
        ]
        for name, found in times.items()
    ]
    say_table(title, rows)


def main() -> None:
    """Measures, prints the tables, writes the figures."""
    parser = benchmark_parser(__doc__, repeats=5, threads=1, devices=True)
    parser.add_argument('config')
    parser.add_argument('checkpoint')
    parser.add_argument('folder', help='folder of images')
    parser.add_argument('--images', type=int, default=40, help='number of images (default: 40)')
    parser.add_argument(
        '--test', action='store_true', help="also test on the first images of the config's test set"
    )
    options = parser.parse_args()
    options.device = options.device or 'cpu'
    results = begin(options)
    with tempfile.TemporaryDirectory() as place:
        chosen = list(islice(find_images(options.folder).values(), options.images))
        for index, path in enumerate(chosen):
            Path(place, f'{index:05d}{path.suffix}').symlink_to(path.resolve())
        results['times'] = measure(options, Path(place))
    say_times('Masks and overlays of a folder', len(chosen), results['times'])
    if options.test:
        with tempfile.TemporaryDirectory() as place:
            results['tests'] = measure_tests(options, Path(place))
        say_times('A test', options.images, results['tests'])
    save(options, results)


if __name__ == '__main__':
    main()
