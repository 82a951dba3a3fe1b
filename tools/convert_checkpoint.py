#!/usr/bin/env python
"""Converts a checkpoint of the authors' public code into this project's format.

Also converts their ImageNet weights, which configs/public starts from. If names are missing or
unexpected, they are listed, and nothing is written.

Examples:
    mmseg-cct convert-checkpoint best_model.pth cct_voc_1464.pth
    mmseg-cct convert-checkpoint 3x3resnet50-imagenet.pth data/3x3resnet50-imagenet_mmseg.pth
    mmseg-cct predict configs/public/cct_r50_voc_1464.py cct_voc_1464.pth photos --out DIR
"""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING

from mmseg_cct.cli.arguments import InputPath, add_overwrite, tool_parser
from mmseg_cct.cli.start import register, running
from mmseg_cct.utils.files import output_file

if TYPE_CHECKING:
    from mmseg_cct.apis.convert import Renamed


def parse_args() -> argparse.Namespace:
    """Reads the command line."""
    parser = tool_parser(__doc__)
    parser.add_argument(
        'source', type=InputPath, metavar='IN', help='checkpoint of the public code'
    )
    parser.add_argument('target', metavar='OUT', help='file to write')
    add_overwrite(parser)
    return parser.parse_args()


def describe(done: Renamed) -> str:
    """Describes a converted checkpoint and the configs that it is for."""
    if not done.num_classes:
        return f'{len(done.state)} weights of a ResNet-50, for model.backbone of configs/public'
    decoders = f'{done.num_decoders} auxiliary decoders' if done.num_decoders else 'main path alone'
    return (
        f'{len(done.state)} weights, {done.num_classes} classes, {decoders}; made for '
        'configs/public'
    )


def main() -> int:
    """Converts the checkpoint; returns 1 if names did not match."""
    args = parse_args()
    with running(args):
        output_file(args.target, [args.source], overwrite=args.overwrite, option='OUT')
        register()
        from mmseg_cct.apis.convert import convert_file

        done = convert_file(args.source, args.target)
    for problem, names in (('missing', done.missing), ('unexpected', done.unexpected)):
        for name in names:
            print(f'{problem}: {name}', file=sys.stderr)
    wrong = len(done.missing) + len(done.unexpected)
    if wrong:
        print(
            f'error: {args.source}: {len(done.missing)} names are missing and '
            f'{len(done.unexpected)} unexpected; nothing is written',
            file=sys.stderr,
        )
    else:
        print(f'{args.target}: {describe(done)}')
    return 1 if wrong else 0


if __name__ == '__main__':
    sys.exit(main())
