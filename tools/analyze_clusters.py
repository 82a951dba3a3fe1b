#!/usr/bin/env python
"""Tests the cluster assumption on images and features, as in section 3.1 of the paper.

Plots the mean distance to the 8 neighbours, for 20×20 patches of the input and for hidden features
upsampled to the image (DIR/clusters.png). Measures the ratio of this distance on class boundaries
to that inside classes, per test image and over all (DIR/clusters.md): the larger it is, the better
low-density regions match class boundaries.

Examples:
    python tools/analyze_clusters.py CONFIG CHECKPOINT --out work_dirs/clusters
    python tools/analyze_clusters.py CONFIG --layers backbone.layer1 backbone.layer4 --out DIR
"""

import argparse

from mmseg_cct.cli.arguments import add_cfg_options, add_device, at_least, chosen, tool_parser
from mmseg_cct.cli.start import running


def parse_args() -> argparse.Namespace:
    """Reads the command line."""
    parser = tool_parser(__doc__)
    parser.add_argument('config', help='config of the model')
    parser.add_argument(
        'checkpoint', nargs='?',
        help='weights (default: the pretrained ones that the config names)',
    )  # fmt: skip
    parser.add_argument('--out', required=True, metavar='DIR', help='folder of the results')
    parser.add_argument(
        '--layers', nargs='+', default=[], metavar='NAME',
        help='modules by dotted name; of several outputs the last counts (default: backbone and, '
        'with a checkpoint, neck, whose output is z)',
    )  # fmt: skip
    parser.add_argument(
        '--num-images', type=at_least(1), default=8,
        help='images to analyse, evenly spaced over the set (default: 8)',
    )  # fmt: skip
    parser.add_argument(
        '--boundary-width', type=at_least(1), default=5, metavar='PIXELS',
        help='a location is on a boundary if it has two classes within this distance (default: 5)',
    )  # fmt: skip
    parser.add_argument(
        '--margin', type=at_least(0), default=0, metavar='PIXELS',
        help='image border to leave out of the ratios, because zero padding dominates small maps '
        'there (default: 0)',
    )  # fmt: skip
    add_device(parser)
    add_cfg_options(parser)
    return parser.parse_args()


def main() -> None:
    """Writes maps and ratios."""
    args = parse_args()
    with running(args):
        from mmseg_cct.studies.clusters import ClusterRequest, write_cluster_report

        files = write_cluster_report(chosen(args, ClusterRequest))
    print(f'wrote {", ".join(map(str, files))}')


if __name__ == '__main__':
    main()
