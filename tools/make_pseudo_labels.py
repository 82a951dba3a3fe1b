#!/usr/bin/env python
"""Makes pseudo labels from image-level labels: class activation maps, thresholds, dense CRF.

What to label and how is the section `pseudo_labels` of the classifier's config (configs/weak).
Written are DIR/labels/NAME.png, DIR/before_crf/NAME.png, DIR/report.md and DIR/pictures.png. A run
that was stopped goes on where it was. Images that cannot be read are reported and skipped, and the
exit code is 1 then.

Example:
    python tools/make_pseudo_labels.py configs/weak/cam_r50_voc.py CHECKPOINT --out work_dirs/pseudo
"""

import argparse
import os
import sys

import torch

from mmseg_cct.apis.config import load_config
from mmseg_cct.engine.checkpoints import require_checkpoint
from mmseg_cct.pseudo_labels import make_pseudo_labels
from mmseg_cct.utils.cli import add_cfg_options, add_device, at_least, user_errors_as_one_line


def parse_args() -> argparse.Namespace:
    """Reads the command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument('config', help='the config of the classifier')
    parser.add_argument('checkpoint', help="the classifier's weights")
    parser.add_argument('--out', required=True, metavar='DIR', help='folder for the labels')
    parser.add_argument('--no-crf', action='store_true', help='leave out the dense CRF')
    parser.add_argument(
        '--workers',
        type=at_least(0),
        default=os.cpu_count(),
        help='processes that run the CRF, and without a GPU the classifier too; 0: none but this '
        'one (default: one for each core, here %(default)s)',
    )
    parser.add_argument(
        '--batch-size', type=at_least(1), default=8, help='images in the classifier (default: 8)'
    )
    parser.add_argument(
        '--pictures', type=at_least(0), default=6, help='images in the grid (default: 6)'
    )
    add_device(parser)
    add_cfg_options(parser)
    return parser.parse_args()


def main() -> int:
    """Makes the labels that the command line asks for.

    Returns:
        The exit code: 1 where an image could not be read.
    """
    args = parse_args()
    with user_errors_as_one_line():
        require_checkpoint(args.checkpoint)
        counts = make_pseudo_labels(
            load_config(args.config, args.cfg_options),
            args.checkpoint,
            args.out,
            with_crf=not args.no_crf,
            workers=args.workers,
            batch_size=args.batch_size,
            num_pictures=args.pictures,
            device=args.device or ('cuda:0' if torch.cuda.is_available() else 'cpu'),
        )
    for line in counts.failed:
        print(f'error: {line}', file=sys.stderr)
    print(f'{counts.describe(args.out)}; see {os.path.join(args.out, "report.md")}')
    return 1 if counts.failed else 0


if __name__ == '__main__':
    sys.exit(main())
