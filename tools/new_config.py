#!/usr/bin/env python
"""Writes a config for your own images, which any method can train.

It counts and checks what is in DATA/images, DATA/masks (masks of some of the images, with the same
names: one channel of class ids, 255 = ignore) and DATA/val (the same, for validation).

Examples:
    mmseg-cct new-config data/mine --classes background crack rust
    mmseg-cct new-config data/mine --classes background crack rust \\
        --preset quick --out configs/quick
"""

import argparse

from mmseg_cct.cli.arguments import (
    METHODS_HELP,
    add_backbone,
    add_suffixes,
    integer_from,
    options_as,
    tool_parser,
)
from mmseg_cct.cli.start import register, running
from mmseg_cct.config.shipped import method_names
from mmseg_cct.writer.choices import BACKBONES, PRESETS, Choices, check_choices, plain_name

# aligns several domains, and a folder is one
_METHODS = [name for name in method_names() if name != 'cct-adv']


def _size(value: str) -> tuple[int, int]:
    sides = value.lower().split('x')
    if len(sides) != 2 or not all(side.isdecimal() for side in sides):
        raise argparse.ArgumentTypeError(f'{value}; expected WIDTHxHEIGHT, such as 320x160')
    return int(sides[0]), int(sides[1])


def _channels(value: str) -> tuple[int, ...]:
    channels = value.split(',')
    if not all(channel.isdecimal() for channel in channels):
        raise argparse.ArgumentTypeError(f'{value}; expected numbers from 0, such as 0,1,2')
    return tuple(map(int, channels))


def parse_args() -> argparse.Namespace:
    """Reads the command line."""
    parser = tool_parser(
        __doc__,
        epilog='Backbones, and whole models:\n'
        + '\n'.join(f'  {name:20} {backbone.title}' for name, backbone in BACKBONES.items()),
    )
    parser.add_argument('data', help='folder with images, masks and val')
    parser.add_argument(
        '--classes',
        nargs='+',
        metavar='NAME',
        help='in the order of their ids, separated by spaces or commas (default: those of '
        'DATA/classes.json)',
    )
    parser.add_argument(
        '--context',
        nargs='+',
        metavar='NAME',
        help='the classes that are not objects (default: the background, if there is one)',
    )
    add_backbone(
        parser, BACKBONES, 'the encoder or model, see below (default: mbv2, which needs no GPU)'
    )
    parser.add_argument(
        '--method',
        choices=_METHODS,
        default='cct-strong',
        metavar='NAME',
        help='what the config trains unless mmseg-cct train names another (default: cct-strong, '
        'CCT whose auxiliary decoders see a strong view; cct: the same view as the main decoder, '
        f'in about the same time per step); any of {METHODS_HELP}',
    )
    presets = [f'{name}, {preset.title}' for name, preset in PRESETS.items()]
    parser.add_argument(
        '--preset',
        choices=PRESETS,
        default='normal',
        help=f'{"; ".join(presets)} (default: normal). It stands for --iters, --batch-size and the '
        'longest side of --size',
    )
    parser.add_argument(
        '--size',
        type=_size,
        metavar='WxH',
        help='width and height that images are resized into; training scales that by 0.5 to 2 '
        '(default: their own, with a longest side of 512 at most; quick: 256)',
    )
    parser.add_argument(
        '--crop',
        type=_size,
        metavar='WxH',
        help='width and height of the training crops (default: --size; half of it for models that '
        'need no GPU, from a --size of 192 on, because a step then takes a quarter of the time)',
    )
    parser.add_argument(
        '--iters',
        type=integer_from(1),
        metavar='N',
        help='iterations (default: '
        + ', '.join(f'{preset.iters} of {name}' for name, preset in PRESETS.items())
        + ')',
    )
    parser.add_argument(
        '--batch-size',
        type=integer_from(1),
        metavar='N',
        help='pairs of a labelled and an unlabelled image (default: 8; quick: 4)',
    )
    add_suffixes(parser)
    parser.add_argument(
        '--channels',
        type=_channels,
        metavar='N,N,...',
        help='channels of the images to load, from 0, such as 0,1,2 (default: all except opacity)',
    )
    parser.add_argument(
        '--bits',
        type=integer_from(1),
        metavar='N',
        help='bits that the values have if the files have more, such as 12 in 16 (default: as many '
        'as the values need)',
    )
    start = parser.add_mutually_exclusive_group()
    start.add_argument(
        '--weights', metavar='FILE', help="the backbone's weights (default: from the model zoo)"
    )
    start.add_argument('--from-scratch', action='store_true', help='start from random weights')
    parser.add_argument(
        '--out',
        default=None,
        metavar='DIR',
        help='folder for the config (default: configs/NAME of the data)',
    )
    parser.add_argument('--force', action='store_true', help='overwrite existing files')
    args = parser.parse_args()
    if args.classes and len(args.classes) == 1:
        args.classes = [name.strip() for name in args.classes[0].split(',')]
    return args


def main() -> None:
    """Writes the config and says what to do next."""
    args = parse_args()
    choices = options_as(Choices, args)
    with running(args):
        check_choices(args.data, choices)
        register()
        from mmseg_cct.writer.new_config import new_config

        written = new_config(args.data, args.out or f'configs/{plain_name(args.data)}', choices)
        print(f'{args.data}: {written.described}\n')
        for line in written.notes:
            print(f'note: {line}')
        for line in written.warnings:
            print(f'warning: {line}')
        print('Written:', written.file, *written.lists, sep='\n  ')
    print('Next:', *written.commands, sep='\n  ')


if __name__ == '__main__':
    main()
