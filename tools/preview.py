#!/usr/bin/env python
"""Shows what the masks so far give for all photos, before any training.

A linear classifier on frozen features of the pretrained backbone is fitted to DATA/masks and
predicts DATA/images. DIR gets masks/, overlays/, confidence/ and predict.csv as predict writes
them, and preview.html (open it in a browser): what the masks are worth on images that are left out
in turn, each mask beside what the others expect, and the least certain photos. A labelled image is
predicted by the masks of the others. Features are kept, so a second call, with more masks, is
quick; a stopped call goes on where it was. Unreadable images are reported and skipped, with exit
code 1.

Examples:
    mmseg-cct preview data/mine --out preview
    mmseg-cct preview data/mine --images photos --backbone r50 --out preview
"""

import argparse
import sys

from mmseg_cct.annotations import FORMATS
from mmseg_cct.cli.arguments import (
    InputPath,
    add_backbone,
    add_device,
    add_suffixes,
    add_weights,
    integer_from,
    options_as,
    tool_parser,
)
from mmseg_cct.cli.start import register, running
from mmseg_cct.datasets.files.image_files import training_dirs
from mmseg_cct.errors import printable
from mmseg_cct.writer.choices import BACKBONES


def parse_args() -> argparse.Namespace:
    """Reads the command line."""
    parser = tool_parser(__doc__)
    parser.add_argument('data', type=InputPath, help='folder with images, and masks for some')
    parser.add_argument('--out', required=True, metavar='DIR', help='folder for the predictions')
    parser.add_argument(
        '--images',
        type=InputPath,
        metavar='DIR',
        help='photos to predict, with subfolders (default: DATA/images)',
    )
    parser.add_argument(
        '--classes',
        nargs='+',
        metavar='NAME',
        help='in the order of their ids (default: those of DATA/classes.json)',
    )
    parser.add_argument(
        '--held-out',
        type=InputPath,
        metavar='FILE',
        help='images whose masks are not used, one name a line, such as the val.txt of new-config: '
        'if you train on the predictions and validate on these images',
    )
    add_suffixes(parser)
    add_backbone(parser, BACKBONES, 'whose features are used, as in new-config (default: mbv2)')
    add_weights(parser)
    parser.add_argument(
        '-n',
        '--number',
        type=integer_from(1),
        default=30,
        metavar='N',
        help='masks, and photos, in the page (default: 30)',
    )
    parser.add_argument(
        '--format',
        choices=['masks', *FORMATS],
        help='also write the masks for a labelling tool; masks are written anyway',
    )
    add_device(parser)
    return parser.parse_args()


def main() -> int:
    """Writes predictions and page; returns 1 if an image could not be read."""
    args = parse_args()
    with running(args):
        from mmseg_cct.writer.folder_classes import classes_of_folder

        args.classes = classes_of_folder(args.data, args.classes)
        register()
        from mmseg_cct.apis.prediction import export_predictions
        from mmseg_cct.labelling.preview import PreviewRequest, preview
        from mmseg_cct.writer.base_model import frozen_model

        model = frozen_model(args.backbone, args.weights)
        fit, twins, counts = preview(options_as(PreviewRequest, args), model)
        if args.format in FORMATS:
            images = args.images or str(training_dirs(args.data)[0])
            export_predictions(images, args.out, args.format)
    for line in counts.failed:
        print(f'error: {line}', file=sys.stderr)
    if fit.absent:
        print(printable(f'in no mask, so never predicted: {", ".join(fit.absent)}'))
    for mask in fit.fitted.judged:
        if mask.is_doubtful:
            print(printable(f'{mask.name}: doubtful, the other masks contradict it'))
    for first, second in twins:
        print(printable(f'{first} and {second}: the same image with different masks'))
    print(printable(fit.fitted.worth))
    print(counts.describe(args.out))
    print(f'Look at {args.out}/preview.html')
    return 1 if counts.failed else 0


if __name__ == '__main__':
    sys.exit(main())
