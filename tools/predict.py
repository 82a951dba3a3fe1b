#!/usr/bin/env python
"""Segments an image or a folder of images of any size.

For each image it writes DIR/masks/NAME.png, a palette PNG of class ids, and DIR/overlays/NAME.png
with the names of its classes below. DIR/legend.png has the colours of all.
A run that was stopped goes on where it was. Images that cannot be read are reported and skipped,
and the exit code is 1 then.

One of several processes does a share of the images: --launcher pytorch under torchrun, slurm under
srun. Run it again to finish what a stopped run left.

Examples:
    python tools/predict.py CONFIG CHECKPOINT photos --out predictions
    python tools/predict.py MULTI_DOMAIN_CONFIG CHECKPOINT photos --out predictions --domain camvid
"""

import argparse
import sys

from mmseg_cct.cli.arguments import add_cfg_options, add_device, add_palette, tool_parser
from mmseg_cct.cli.ranks import add_launcher
from mmseg_cct.cli.start import running


def _opacity(value: str) -> float:
    opacity = float(value)
    if not 0.0 <= opacity <= 1.0:
        raise argparse.ArgumentTypeError(f'{value}; expected a number in [0, 1]')
    return opacity


def parse_args() -> argparse.Namespace:
    """Reads the command line."""
    parser = tool_parser(__doc__)
    parser.add_argument('config', help='the config file')
    parser.add_argument('checkpoint', help='the checkpoint file')
    parser.add_argument('input', help='an image, or a folder of images with its subfolders')
    parser.add_argument('--out', required=True, metavar='DIR', help='folder for the predictions')
    add_device(parser)
    add_launcher(parser)
    parser.add_argument(
        '--domain', metavar='NAME', help='of a model for several domains, the one to predict with'
    )
    parser.add_argument(
        '--opacity', type=_opacity, default=0.5, help='of the overlays, in [0, 1] (default: 0.5)'
    )
    add_palette(parser)
    add_cfg_options(parser)
    return parser.parse_args()


def main() -> int:
    """Predicts as the command line says; returns 1 if an image could not be read."""
    args = parse_args()
    with running(args):
        from mmseg_cct.apis.inference import predict_images
        from mmseg_cct.utils.shares import connected

        with connected(args.launcher) as rank:
            counts = predict_images(
                args.config,
                args.checkpoint,
                args.input,
                args.out,
                options=args.cfg_options,
                device=args.device,
                opacity=args.opacity,
                domain=args.domain,
                palette=args.palette,
            )
    if rank:  # the first process speaks for all
        return 0
    for line in counts.failed:
        print(f'error: {line}', file=sys.stderr)
    print(counts.describe(args.out))
    return 1 if counts.failed else 0


if __name__ == '__main__':
    sys.exit(main())
