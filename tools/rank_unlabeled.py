#!/usr/bin/env python
"""Ranks unlabelled images for annotation.

The score of an image is the disagreement of the auxiliary decoders with the main one: the share of
pixels with another predicted class, or the mean consistency distance. Writes DIR/ranking.csv (file,
score, score by perturbation; highest first) and DIR/contact_sheet.png (image, prediction and
disagreement map of the first images). Unreadable images are reported and skipped, with exit code 1.

One of several processes does a share of the images: --launcher pytorch under torchrun, slurm under
srun. Run it again to finish what a stopped run left.

Examples:
    python tools/rank_unlabeled.py CONFIG CHECKPOINT --from-config --out ranking
    python tools/rank_unlabeled.py CONFIG CHECKPOINT --images photos --out ranking
"""

import argparse
import sys

from mmseg_cct.cli.arguments import add_cfg_options, add_device, at_least, seed, tool_parser
from mmseg_cct.cli.ranks import add_launcher
from mmseg_cct.cli.start import running


def parse_args() -> argparse.Namespace:
    """Reads the command line."""
    parser = tool_parser(__doc__)
    parser.add_argument('config', help='the config of the training')
    parser.add_argument('checkpoint', help='its checkpoint, with the auxiliary decoders')
    source = parser.add_mutually_exclusive_group(required=True)
    source.add_argument('--images', metavar='DIR', help='a folder of images with its subfolders')
    source.add_argument(
        '--from-config', action='store_true', help='the unlabelled images of the config'
    )
    parser.add_argument('--out', required=True, metavar='DIR', help='folder for the two files')
    parser.add_argument(
        '--top', type=at_least(1), default=12, help='images on the contact sheet (default: 12)'
    )
    parser.add_argument(
        '--measure',
        choices=['labels', 'distance'],
        default='labels',
        help='another class, or the distance of the consistency loss (default: labels)',
    )
    parser.add_argument(
        '--seed', type=seed, default=0, help='seed of the perturbations (default: 0)'
    )
    add_device(parser)
    add_launcher(parser)
    add_cfg_options(parser)
    return parser.parse_args()


def main() -> int:
    """Ranks the images; returns 1 if one could not be read."""
    args = parse_args()
    with running(args):
        from mmseg_cct.analysis.ranking import rank_images
        from mmseg_cct.utils.shares import connected

        with connected(args.launcher) as rank:
            ranking = rank_images(
                args.config,
                args.checkpoint,
                args.out,
                images=args.images,
                options=args.cfg_options,
                device=args.device,
                seed=args.seed,
                top=args.top,
                measure=args.measure,
            )
    if rank:  # the first process speaks for all
        return 0
    for line in ranking.failed:
        print(f'error: {line}', file=sys.stderr)
    first = f', first {ranking.images[0].name}' if ranking.images else ''
    counts = f'{len(ranking.images)} images ranked', f'{len(ranking.failed)} unreadable'
    print(f'{counts[0]} in {args.out}{first}; {counts[1]}')
    return 1 if ranking.failed else 0


if __name__ == '__main__':
    sys.exit(main())
