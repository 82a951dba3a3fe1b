#!/usr/bin/env python
"""Shows which masks the other masks contradict, such as that of another image.

From five masks on, a linear classifier on frozen features of the pretrained backbone is fitted to
all masks but one, and predicts that one. DIR gets review.html (open it in a browser), photo with
mask and with what the others expect, most doubtful first, and masks.csv with the score of each.

Examples:
    mmseg-cct check-masks data/mine --out masks_check
"""

import argparse

from mmseg_cct.cli.arguments import InputPath, add_backbone, add_device, integer_from, tool_parser
from mmseg_cct.cli.start import running
from mmseg_cct.errors import printable
from mmseg_cct.writer.backbones import BACKBONES


def parse_args() -> argparse.Namespace:
    """Reads the command line."""
    parser = tool_parser(__doc__)
    parser.add_argument('data', type=InputPath, help='folder with images and masks')
    parser.add_argument('--out', required=True, metavar='DIR', help='folder for the page')
    parser.add_argument(
        '--classes',
        nargs='+',
        metavar='NAME',
        help='in the order of their ids (default: those of DATA/classes.json)',
    )
    parser.add_argument(
        '-n',
        '--number',
        type=integer_from(1),
        default=50,
        metavar='N',
        help='masks in the page (default: 50)',
    )
    add_backbone(parser, BACKBONES, 'whose features are used, as in new-config (default: mbv2)')
    parser.add_argument(
        '--mask-suffix',
        default='.png',
        metavar='END',
        help="end of a mask's name, after that of its image, such as _mask.png (default: .png)",
    )
    add_device(parser)
    return parser.parse_args()


def main() -> None:
    """Writes the page and names the doubtful masks."""
    args = parse_args()
    with running(args):
        from mmseg_cct.labelling.mask_check import check_masks
        from mmseg_cct.writer.folder_classes import classes_of_folder

        judged, pairs = check_masks(
            args.data,
            classes_of_folder(args.data, args.classes),
            args.out,
            model_name=BACKBONES[args.backbone].model,
            number=args.number,
            mask_suffix=args.mask_suffix,
            device=args.device,
        )
    for mask in judged:
        if mask.is_doubtful:
            print(printable(f'{mask.name}: doubtful, score {mask.score:.2f}'))
    for first, second in pairs:
        print(printable(f'{first} and {second}: the same image with different masks'))
    print(f'Look at {args.out}/review.html: wrong masks may be below the doubtful ones, too')


if __name__ == '__main__':
    main()
