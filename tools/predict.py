#!/usr/bin/env python
"""Segments an image, or a folder of images of any size.

For each image it writes DIR/masks/NAME.png, a palette PNG of class ids, and DIR/overlays/NAME.png
with the names of its classes below. DIR/legend.png and DIR/classes.json list all classes.
Unreadable images are reported and
skipped, with exit code 1.

--format also writes the masks for a labelling tool, as polygons to correct: DIR/coco.json,
DIR/cvat.xml, DIR/labelme or DIR/label_studio.json. The class named background is not drawn. Masks
that are there already are only converted; annotations that you have edited are never replaced.

Several processes share the images with --launcher: pytorch under torchrun, slurm under srun. Run it
again to finish what a stopped run left.

Examples:
    mmseg-cct predict WORK_DIR photos --out predictions
    mmseg-cct predict CONFIG CHECKPOINT photos --out predictions --format cvat
    mmseg-cct predict WORK_DIR photos --out predictions --domain camvid
"""

import argparse
import math
import sys

from mmseg_cct.annotations import FORMATS
from mmseg_cct.cli.arguments import (
    InputPath,
    add_cfg_options,
    add_device,
    add_domain,
    add_launcher,
    add_palette,
    add_run,
    integer_from,
    tool_parser,
)
from mmseg_cct.cli.start import register, running


def _opacity(value: str) -> float:
    opacity = float(value)
    if not 0.0 <= opacity <= 1.0:
        raise argparse.ArgumentTypeError(f'{value}; expected a number in [0, 1]')
    return opacity


def _pixels(value: str) -> float:
    pixels = float(value)
    if not 0.0 <= pixels < math.inf:
        raise argparse.ArgumentTypeError(f'{value}; expected 0 or more pixels')
    return pixels


def parse_args() -> argparse.Namespace:
    """Reads the command line."""
    parser = tool_parser(__doc__)
    add_run(parser)
    parser.add_argument(
        'images',
        type=InputPath,
        metavar='IMAGES',
        help='an image, or a folder of images with its subfolders',
    )
    parser.add_argument('--out', required=True, metavar='DIR', help='folder for the predictions')
    parser.add_argument(
        '--format',
        choices=['masks', *FORMATS],
        help='also write them for a labelling tool; masks are written anyway',
    )
    parser.add_argument(
        '--tolerance',
        type=_pixels,
        metavar='PIXELS',
        help='with --format, how far outlines may move to save points; less for small regions '
        '(default: 1)',
    )
    parser.add_argument(
        '--min-area',
        type=integer_from(0),
        metavar='PIXELS',
        help='with --format, smaller regions are merged into their surroundings (default: 10)',
    )
    parser.add_argument(
        '--confidence',
        action='store_true',
        help='also write DIR/confidence/NAME.png, the probability of the predicted class as 0 to '
        '255, and DIR/predict.csv with the mean of each image; it is not calibrated',
    )
    add_device(parser)
    add_launcher(parser)
    add_domain(parser)
    parser.add_argument(
        '--opacity', type=_opacity, default=0.5, help='of the overlays, in [0, 1] (default: 0.5)'
    )
    add_palette(parser)
    add_cfg_options(parser, takes_method=False)
    args = parser.parse_intermixed_args()
    if args.format not in FORMATS and (args.tolerance, args.min_area) != (None, None):
        parser.error('--tolerance and --min-area go with a --format of outlines')
    return args


def main() -> int:
    """Predicts as the command line says; returns 1 if an image could not be read."""
    args = parse_args()
    with running(args):
        register()
        from mmseg_cct.apis.prediction import export_predictions, predict_images
        from mmseg_cct.apis.run import Run
        from mmseg_cct.utils.processes import connected

        with connected(args.launcher) as rank:
            run = Run.open(args.run, args.checkpoint, options=args.options)
            counts = predict_images(
                run.of_domain(args.domain),
                args.images,
                args.out,
                device=args.device,
                opacity=args.opacity,
                palette=args.palette,
                confidence=args.confidence,
            )
            if args.format in FORMATS and rank == 0:
                outlines = dict(tolerance=args.tolerance, min_area=args.min_area)
                chosen = {name: value for name, value in outlines.items() if value is not None}
                export_predictions(args.images, args.out, args.format, **chosen)
    if rank:  # the first process speaks for all
        return 0
    for line in counts.failed:
        print(f'error: {line}', file=sys.stderr)
    print(counts.describe(args.out))
    return 1 if counts.failed else 0


if __name__ == '__main__':
    sys.exit(main())
