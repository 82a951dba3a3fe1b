#!/usr/bin/env python
"""Writes a config of CCT on top of a config of MMSegmentation.

Your data, model, schedule and evaluation stay. The new config adds the unlabelled images and the
auxiliary decoders, which fit the features that a dry run of the model measures.

Examples:
    mmseg-cct add-cct configs/mine/deeplabv3plus.py --unlabeled data/more/images \\
        --out configs/mine/cct_deeplabv3plus.py
    mmseg-cct add-cct segformer_mit-b0_8xb1-160k_cityscapes-1024x1024 \\
        --unlabeled data/cityscapes/leftImg8bit/train_extra --context road sky building \\
        --out configs/mine/cct_segformer.py
"""

import argparse

from mmseg_cct.cli.arguments import METHODS_HELP, InputPath, method, tool_parser
from mmseg_cct.cli.start import register, running


def parse_args() -> argparse.Namespace:
    """Reads the command line."""
    parser = tool_parser(__doc__)
    parser.add_argument('config', help='a config of MMSegmentation, by path or by name')
    parser.add_argument(
        '--unlabeled',
        type=InputPath,
        required=True,
        metavar='DIR',
        help='folder of unlabelled images',
    )
    parser.add_argument('--out', required=True, metavar='FILE', help='config to write')
    parser.add_argument(
        '--context',
        nargs='+',
        metavar='NAME',
        help='the classes that are not objects (default: the background, if there is one)',
    )
    parser.add_argument(
        '--method',
        type=method,
        default='cct-strong',
        metavar='NAME',
        help='what the config trains unless mmseg-cct train names another (default: cct-strong, '
        f'CCT whose auxiliary decoders see a strong view); any of {METHODS_HELP}',
    )
    parser.add_argument('--force', action='store_true', help='overwrite an existing config')
    return parser.parse_args()


def main() -> None:
    """Writes the config and says what was chosen."""
    args = parse_args()
    with running(args):
        register()
        from mmseg_cct.writer.add_cct import add_cct

        added = add_cct(
            args.config,
            args.unlabeled,
            args.out,
            context=args.context,
            method=args.method,
            force=args.force,
        )
    print(*added.choices, sep='\n')
    print(f'Written: {added.file}')
    print('Next:', *added.commands, sep='\n  ')


if __name__ == '__main__':
    main()
