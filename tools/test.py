#!/usr/bin/env python
"""Evaluates a trained network on the test set of its config.

Examples:
    mmseg-cct test WORK_DIR
    mmseg-cct test CONFIG CHECKPOINT --tta
    mmseg-cct test WORK_DIR --out predictions
"""

import argparse

from mmseg_cct.cli.arguments import add_cfg_options, add_launcher, add_run, options_as, tool_parser
from mmseg_cct.cli.start import register, running


def parse_args() -> argparse.Namespace:
    """Reads the command line."""
    parser = tool_parser(__doc__)
    add_run(parser)
    parser.add_argument(
        '--work-dir',
        metavar='DIR',
        help='where to write the metrics and the log (default: test/ in the work directory of the '
        'training, whose own files are never overwritten)',
    )
    parser.add_argument(
        '--out',
        metavar='DIR',
        help='write the predictions as PNGs of class ids, named after the images without their '
        'folders; mmseg-cct predict keeps the folders',
    )
    parser.add_argument(
        '--tta',
        action='store_true',
        help='average the probabilities over the scales and flips of the tta_pipeline',
    )
    add_cfg_options(parser)
    add_launcher(parser)
    return parser.parse_intermixed_args()


def main() -> None:
    """Tests as the command line says."""
    args = parse_args()
    with running(args):
        register()
        from mmseg_cct.apis.prepare import Request
        from mmseg_cct.apis.run import Run
        from mmseg_cct.apis.test import prepare_test, test

        run = Run.open(args.run, args.checkpoint, options=args.options)
        test(prepare_test(run, options_as(Request, args)))


if __name__ == '__main__':
    main()
