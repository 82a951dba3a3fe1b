#!/usr/bin/env python
"""Generates pseudo labels from image-level labels: class activation maps, thresholds, dense CRF.

The section `pseudo_labels` of the classifier's config (configs/weak) has images and settings.
Writes DIR/labels/NAME.png and DIR/before_crf/NAME.png, and logs how both agree with the masks that
there are. Unreadable images are reported and skipped, with exit code 1.

Several processes share the images with --launcher: pytorch under torchrun, slurm under srun. Run it
again to finish what a stopped run left.

Example:
    mmseg-cct make-pseudo-labels configs/weak/cam_r50_voc.py CHECKPOINT --out work_dirs/pseudo
"""

import argparse
import sys

from mmseg_cct.cli.arguments import (
    InputPath,
    add_cfg_options,
    add_device,
    add_launcher,
    integer_from,
    tool_parser,
)
from mmseg_cct.cli.start import register, running


def parse_args() -> argparse.Namespace:
    """Reads the command line."""
    parser = tool_parser(__doc__)
    parser.add_argument('config', help='the config of the classifier')
    parser.add_argument('checkpoint', type=InputPath, help="the classifier's weights")
    parser.add_argument('--out', required=True, metavar='DIR', help='folder for the labels')
    parser.add_argument('--no-crf', action='store_true', help='leave out the dense CRF')
    parser.add_argument(
        '--workers',
        type=integer_from(0),
        help='worker processes for the CRF; 0 works in this process (default: the cores of this '
        'machine, shared among its processes)',
    )
    parser.add_argument(
        '--batch-size',
        type=integer_from(1),
        default=8,
        help='batch size of the classifier (default: 8)',
    )
    add_device(parser)
    add_launcher(parser)
    add_cfg_options(parser)
    return parser.parse_args()


def main() -> int:
    """Generates the labels; returns 1 if an image could not be read."""
    args = parse_args()
    with running(args):
        register()
        from mmseg_cct.apis.device import default_device
        from mmseg_cct.config.load import load_config
        from mmseg_cct.pseudo_labels import make_pseudo_labels
        from mmseg_cct.utils.processes import connected

        config = load_config(args.config, args.options)
        with connected(args.launcher) as rank:
            counts = make_pseudo_labels(
                config,
                args.checkpoint,
                args.out,
                with_crf=not args.no_crf,
                workers=_workers() if args.workers is None else args.workers,
                batch_size=args.batch_size,
                device=args.device or default_device(),
            )
    if rank:  # the first process speaks for all
        return 0
    for line in counts.failed:
        print(f'error: {line}', file=sys.stderr)
    print(counts.describe(args.out))
    return 1 if counts.failed else 0


def _workers() -> int:
    from mmseg_cct.utils.processes import usable_cores

    return max(1, usable_cores())


if __name__ == '__main__':
    sys.exit(main())
