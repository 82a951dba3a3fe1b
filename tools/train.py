#!/usr/bin/env python
"""Trains a config: cross-consistency training, a supervised baseline or any other MMSeg config.

Examples:
    mmseg-cct train configs/cct/cct_mbv2_camvid_50.py
    mmseg-cct train configs/cct/cct_mbv2_camvid_50.py --resume
    mmseg-cct train CONFIG --amp --cfg-options train_cfg.max_iters=2000
"""

import argparse

from mmseg_cct.cli.arguments import (
    InputPath,
    add_cfg_options,
    add_launcher,
    options_as,
    tool_parser,
)
from mmseg_cct.cli.start import register, running


def parse_args() -> argparse.Namespace:
    """Reads the command line."""
    parser = tool_parser(
        __doc__,
        epilog='A new train_cfg.max_iters moves the end of the learning rate schedule with it, '
        'unless param_scheduler\nis overridden too. Ramps are fractions of the training and follow '
        'anyway.',
    )
    parser.add_argument('config', help='the config file')
    parser.add_argument('--work-dir', help='where to write (default: work_dirs/<config>)')
    parser.add_argument(
        '--resume',
        nargs='?',
        const='auto',
        metavar='CHECKPOINT',
        help='continue from this checkpoint; without a value from the latest in the work directory',
    )
    parser.add_argument(
        '--amp',
        action='store_true',
        help='mixed precision: bfloat16; on GPUs before Ampere float16 with loss scaling',
    )
    parser.add_argument(
        '--compile',
        action='store_true',
        help='compile backbone and neck with torch.compile: minutes at the start, then faster '
        'steps where a GPU waits for its host',
    )
    parser.add_argument(
        '--weak-masks',
        type=InputPath,
        metavar='FOLDER',
        help='masks of unknown quality for the unlabelled images, from SAM or another network '
        '(docs/weak_labels.md)',
    )
    add_cfg_options(parser)
    add_launcher(parser)
    return parser.parse_args()


def main() -> None:
    """Trains as the command line says."""
    args = parse_args()
    with running(args):
        register()
        from mmseg_cct.apis.prepare import Request
        from mmseg_cct.apis.train import prepare_training, train

        train(prepare_training(args.config, options_as(Request, args)))


if __name__ == '__main__':
    main()
