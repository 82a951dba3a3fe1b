#!/usr/bin/env python
"""Chooses the images to label next, and predicts them for you to correct.

Among the images on which the auxiliary decoders disagree most with the main one, it takes those
that look least like one another and like the labelled ones. It leaves out labelled, validation and
test images. DIR gets images/, their predictions in masks/ (palette PNGs of class ids) and in the
format of a labelling tool, review.html (open it in a browser) and ranking.csv (all images by their
disagreement). Unreadable images are reported and skipped, with exit code 1.

With DATA, a folder of images and some masks, it needs no training: it takes the images that a
preview (see mmseg-cct preview) is least certain of, and predicts them by it.

Without either it chooses the first images, from --images alone: those that together look most like
all of them to the pretrained backbone. DIR then gets images/ and review.html.

Several processes share the images with --launcher: pytorch under torchrun, slurm under srun. Run it
again to finish what a stopped run left.

Examples:
    mmseg-cct next-batch WORK_DIR -n 10 --format cvat --out batch1
    mmseg-cct next-batch WORK_DIR --images photos -n 40 --out batch1
    mmseg-cct next-batch data/mine -n 10 --format cvat --out batch1
    mmseg-cct next-batch --images photos -n 10 --out batch0
"""

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from mmseg_cct.annotations import FORMATS
from mmseg_cct.cli.arguments import (
    InputPath,
    add_backbone,
    add_cfg_options,
    add_device,
    add_domain,
    add_launcher,
    add_weights,
    integer_from,
    options_as,
    tool_parser,
)
from mmseg_cct.cli.errors import user_errors_as_one_line
from mmseg_cct.cli.start import register, running
from mmseg_cct.errors import UserError, printable
from mmseg_cct.writer.choices import BACKBONES

if TYPE_CHECKING:
    from mmseg_cct.labelling.next_batch import Batch


def parse_args() -> argparse.Namespace:
    """Reads the command line."""
    parser = tool_parser(__doc__)
    parser.add_argument(
        'run',
        nargs='?',
        metavar='WORK_DIR|DATA',
        help='work directory of a training with auxiliary decoders, or its checkpoint; or a folder '
        'with images, and masks for some (default: no masks yet)',
    )
    parser.add_argument(
        '--images',
        type=InputPath,
        metavar='DIR',
        help="a folder of images with its subfolders (default: the training's unlabelled images)",
    )
    parser.add_argument(
        '--without',
        type=InputPath,
        nargs='+',
        default=[],
        metavar='DIR',
        help='folders of images to leave out, such as those of earlier batches',
    )
    parser.add_argument('--out', required=True, metavar='DIR', help='folder for the batch')
    parser.add_argument(
        '-n',
        '--number',
        type=integer_from(1),
        default=10,
        metavar='N',
        help='images to label (default: 10)',
    )
    parser.add_argument(
        '--format',
        choices=['masks', *FORMATS],
        default='masks',
        help='format of the predictions, for you to correct (default: masks)',
    )
    parser.add_argument(
        '--seed', type=integer_from(0), default=0, help='seed of the perturbations (default: 0)'
    )
    add_backbone(
        parser,
        BACKBONES,
        'without WORK_DIR, the one that will be trained, as in new-config (default: mbv2)',
    )
    add_weights(parser, 'without WORK_DIR, ')
    add_domain(parser)
    add_device(parser)
    add_launcher(parser)
    add_cfg_options(parser, takes_method=False)
    return parser.parse_args()


def main() -> int:
    """Writes a batch; returns 1 if an image could not be read."""
    args = parse_args()
    with user_errors_as_one_line():
        _refuse_unused(args)
    if args.run is None:
        return _first_batch(args)
    if Path(args.run, 'images').is_dir():
        return _preview_batch(args)
    with running(args):
        register()
        from mmseg_cct.apis.run import Run
        from mmseg_cct.labelling.next_batch import BatchRequest, next_batch
        from mmseg_cct.utils.processes import connected

        with connected(args.launcher) as rank:
            run = Run.open(args.run, options=args.options).of_domain(args.domain)
            batch = next_batch(run, options_as(BatchRequest, args))
    if rank:  # the first process speaks for all
        return 0
    return _report(batch, f'Look at {args.out}/review.html and correct the predictions. Next:')


def _refuse_unused(args: argparse.Namespace) -> None:
    """Refuses options that mean nothing without a training, or with one."""
    is_run = args.run is not None and not Path(args.run, 'images').is_dir()
    unused: dict[str, object] = dict(domain=None, launcher='none', options=[])
    if is_run:
        unused = dict(backbone='mbv2', weights=None)
    elif args.run is not None:
        unused['seed'] = 0  # a preview draws nothing
    for name, default in unused.items():
        if getattr(args, name) != default:
            option = '--cfg-options' if name == 'options' else f'--{name}'
            expected = 'it without WORK_DIR' if is_run else 'it with WORK_DIR'
            raise UserError(option, 'has no effect here', expected)


def _preview_batch(args: argparse.Namespace) -> int:
    """Writes a batch by the masks that a data folder has."""
    data = args.__dict__.pop('run')
    with running(args):
        from mmseg_cct.writer.folder_classes import classes_of_folder

        classes = classes_of_folder(data, None)
        register()
        from mmseg_cct.labelling.next_batch import BatchRequest
        from mmseg_cct.labelling.preview import FolderFit, PreviewRequest, preview_batch
        from mmseg_cct.writer.base_model import frozen_model

        model = frozen_model(args.backbone, args.weights)
        fit = FolderFit(PreviewRequest(data, classes, args.out, device=args.device), model)
        batch = preview_batch(options_as(BatchRequest, args), fit)
    return _report(batch, f'Look at {args.out}/review.html and correct the predictions. Next:')


def _first_batch(args: argparse.Namespace) -> int:
    """Writes the first batch, from photos alone."""
    del args.run
    with running(args):
        if args.images is None:
            expected = 'a training, a folder with masks, or --images DIR to begin without'
            raise UserError('WORK_DIR', 'missing', expected)
        register()
        from mmseg_cct.labelling.first_batch import first_batch
        from mmseg_cct.labelling.next_batch import BatchRequest
        from mmseg_cct.writer.base_model import frozen_model

        model = frozen_model(args.backbone, args.weights)
        batch = first_batch(options_as(BatchRequest, args), model)
    return _report(batch, f'Look at {args.out}/review.html, draw the masks of its images. Next:')


def _report(batch: 'Batch', headline: str) -> int:
    """Prints what a batch is and what comes next; returns 1 if an image could not be read."""
    for line in batch.failed:
        print(f'error: {line}', file=sys.stderr)
    print(printable(batch.note))
    if batch.images:
        print(headline, *(f'  {line}' for line in batch.following), sep='\n')
    return 1 if batch.failed else 0


if __name__ == '__main__':
    sys.exit(main())
