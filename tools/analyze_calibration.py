#!/usr/bin/env python
"""Measures how well confidence and agreement tell right pixels from wrong ones.

Compares the main decoder's prediction with the masks of the validation set. Plots the share of
right pixels by its confidence and by the share of the auxiliary decoders that agree with it, a
reliability diagram (DIR/calibration.png), and writes the numbers (DIR/calibration.json).

Examples:
    python tools/analyze_calibration.py CONFIG CHECKPOINT --out work_dirs/calibration
    python tools/analyze_calibration.py CONFIG CHECKPOINT --split test --out DIR
"""

import argparse

from mmseg_cct.analysis.calibration import write_calibration
from mmseg_cct.utils.cli import add_cfg_options, add_device, user_errors_as_one_line


def parse_args() -> argparse.Namespace:
    """Reads the command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument('config', help='config of the training')
    parser.add_argument('checkpoint', help='its checkpoint, with the auxiliary decoders')
    parser.add_argument('--out', required=True, metavar='DIR', help='folder of the results')
    parser.add_argument(
        '--split', choices=['val', 'test'], default='val',
        help="which of the config's data sets (default: val)",
    )  # fmt: skip
    parser.add_argument(
        '--seed', type=int, default=0, help='seed of the perturbations (default: 0)'
    )
    add_device(parser)
    add_cfg_options(parser)
    return parser.parse_args()


def main() -> None:
    """Writes the diagram and prints how far each score tells right from wrong."""
    args = parse_args()
    with user_errors_as_one_line():
        found = write_calibration(
            args.config, args.checkpoint, args.out,
            split=args.split, options=args.cfg_options, device=args.device, seed=args.seed,
        )  # fmt: skip
    for name in ('confidence', 'agreement'):
        separation, error = found[name]['separation'], found[name]['calibration_error']
        shown = 'undefined' if separation is None else f'{separation:.3f}'
        print(f'{name}: separation {shown}, calibration error {error:.3f}')
    print(f'wrote {args.out}')


if __name__ == '__main__':
    main()
