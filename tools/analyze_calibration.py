#!/usr/bin/env python
"""Measures how well confidence and agreement tell right pixels from wrong ones.

Compares the main decoder's prediction with the masks of the validation set. Plots a reliability
diagram, the share of right pixels by its confidence and by the share of the auxiliary decoders that
agree with it (DIR/calibration.png), and writes the numbers (DIR/calibration.json). Then prints by
class how many pixels --threshold would make pseudo labels, and how many of these are right. With
--precision, it also writes a method that trains on the pixels of each class that are right often
enough (DIR/thresholds.py).

Examples:
    python tools/analyze_calibration.py CONFIG CHECKPOINT --out work_dirs/calibration
    python tools/analyze_calibration.py CONFIG CHECKPOINT --split test --threshold 0.8 --out DIR
"""

import argparse
import shlex
import sys
from typing import Any

from mmseg_cct.cli.arguments import add_cfg_options, add_device, seed, tool_parser
from mmseg_cct.cli.start import running
from mmseg_cct.utils.markdown import markdown_table


def parse_args() -> argparse.Namespace:
    """Reads the command line."""
    parser = tool_parser(__doc__)
    parser.add_argument('config', help='config of the training')
    parser.add_argument('checkpoint', help='its checkpoint')
    parser.add_argument('--out', required=True, metavar='DIR', help='folder of the results')
    parser.add_argument(
        '--split', choices=['val', 'test'], default='val',
        help="which of the config's data sets (default: val)",
    )  # fmt: skip
    parser.add_argument(
        '--seed', type=seed, default=0, help='seed of the perturbations (default: 0)'
    )
    parser.add_argument(
        '--threshold', type=float, default=0.95, metavar='T',
        help='confidence that makes a prediction a pseudo label (default: 0.95)',
    )  # fmt: skip
    parser.add_argument(
        '--precision', type=float, metavar='SHARE',
        help='write DIR/thresholds.py, a FixMatch on the pixels of each class that are confident '
        'enough to be right this often; a class that never is does not teach, and can be lost',
    )  # fmt: skip
    add_device(parser)
    add_cfg_options(parser)
    return parser.parse_args()


def main() -> None:
    """Writes the diagram and prints how far each score tells right from wrong."""
    args = parse_args()
    with running(args):
        from mmseg_cct.analysis.calibration import write_calibration

        found = write_calibration(
            args.config, args.checkpoint, args.out,
            split=args.split, options=args.cfg_options, device=args.device, seed=args.seed,
            threshold=args.threshold, precision=args.precision,
        )  # fmt: skip
    for name in ('confidence', 'agreement'):
        if name not in found:  # a model without auxiliary decoders
            continue
        separation, error = found[name]['separation'], found[name]['calibration_error']
        shown = 'undefined' if separation is None else f'{separation:.3f}'
        print(f'{name}: separation {shown}, calibration error {error:.3f}')
    print(_table_of(found['pseudo_labels']))
    if 'teaches' in found:
        print(f'\nWhat teaches at a precision of {args.precision:g}:\n{found["teaches"]}')
        print(f'train on it by --method {shlex.quote(f"{args.out}/thresholds.py")}')
        if lost := found['teach_nothing']:
            print(
                f'warning: {", ".join(lost)}: no confidence is as precise, so nothing of them '
                'teaches, and training can lose them; expected a lower --precision',
                file=sys.stderr,
            )
    print(f'wrote {args.out}')


def _table_of(pseudo_labels: dict[str, Any]) -> str:
    """Writes a Markdown table, in percent."""
    percent = [
        (name, *('' if row[key] is None else f'{row[key]:.0%}' for key in ('used', 'right')))
        for name, row in (*pseudo_labels['by_class'].items(), ('all', pseudo_labels))
    ]
    header = 'true class', f'of confidence {pseudo_labels["threshold"]:g}', 'of these right'
    return markdown_table(header, percent)


if __name__ == '__main__':
    main()
