#!/usr/bin/env python
"""Tests the cluster assumption on images and features, as in section 3.1 of the paper.

Plots the mean distance to the 8 neighbours, for 20×20 patches of the input and for hidden features
upsampled to the image (DIR/clusters.png). Prints the ratio of this distance on class boundaries to
that inside classes, per test image and over all: the larger it is, the better low-density regions
match class boundaries.

Examples:
    python tools/analyze_clusters.py work_dirs/cct_r50_camvid_50 --out work_dirs/clusters
    python tools/analyze_clusters.py CONFIG CHECKPOINT --layers backbone.layer1 neck --out DIR
"""

import argparse

from mmseg_cct.cli.arguments import (
    InputPath,
    add_cfg_options,
    add_device,
    add_domain,
    integer_from,
    tool_parser,
)
from mmseg_cct.cli.start import running


def parse_args() -> argparse.Namespace:
    """Reads the command line."""
    parser = tool_parser(__doc__)
    parser.add_argument('run', metavar='WORK_DIR', help='work directory of a training, or a config')
    parser.add_argument(
        'checkpoint', nargs='?', type=InputPath, help='weights (default: the last in WORK_DIR)'
    )
    parser.add_argument('--out', required=True, metavar='DIR', help='folder of the figure')
    parser.add_argument(
        '--layers', nargs='+', default=['neck', 'backbone'], metavar='NAME',
        help='modules by dotted name; of several outputs the last counts (default: neck, whose '
        'output is z, and backbone)',
    )  # fmt: skip
    parser.add_argument(
        '--num-images', type=integer_from(1), default=8,
        help='images to analyse, evenly spaced over the set (default: 8)',
    )  # fmt: skip
    parser.add_argument(
        '--boundary-width', type=integer_from(1), default=5, metavar='PIXELS',
        help='a location is on a boundary if it has two classes within this distance (default: 5)',
    )  # fmt: skip
    add_domain(parser)
    add_device(parser)
    add_cfg_options(parser)
    return parser.parse_args()


def main() -> None:
    """Draws the maps and prints the ratios."""
    args = parse_args()
    with running(args):
        from mmseg_cct.apis.run import Run
        from mmseg_cct.studies.clusters import write_clusters
        from mmseg_cct.utils.templates import markdown_table

        run = Run.open(args.run, args.checkpoint, options=args.cfg_options)
        run = run.of_domain(args.domain)
        options = args.layers, args.num_images, args.boundary_width, args.device
        ratios = write_clusters(run, args.out, *options)
    print(markdown_table(ratios.header, ratios.rows))
    print(f'wrote {args.out}/clusters.png')


if __name__ == '__main__':
    main()
