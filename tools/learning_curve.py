#!/usr/bin/env python
"""Measures whether CCT pays on your data, and how many labels it is worth.

Trains supervised and with CCT, or another `--method`, on growing subsets of your labelled images,
plots both curves and states the gain in words. Run it again to resume: finished runs are skipped,
stopped ones continue from their checkpoints.

Examples:
    python tools/learning_curve.py configs/cct/cct_r50_folder.py --seeds 0 1 2 --gpus 0,1 \\
        --out work_dirs/curve
    python tools/learning_curve.py CONFIG -n 10 20 40 80 --seeds 0 1 2 --out work_dirs/curve
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from mmseg_cct.cli.arguments import at_least, tool_parser
from mmseg_cct.cli.start import running
from mmseg_cct.errors import UserError
from mmseg_cct.studies.cli import add_study_arguments, run_study

if TYPE_CHECKING:
    from mmseg_cct.studies.execution import StudyRun


def parse_args() -> argparse.Namespace:
    """Reads the command line."""
    parser = tool_parser(
        __doc__,
        epilog='Each seed draws its own labelled images: give at least three seeds. '
        'Images that lose\ntheir labels are not used; the unlabelled set stays as it is.',
    )
    add_study_arguments(parser, takes_method=True)
    parser.add_argument(
        '-n', nargs='+', type=at_least(1), default=[], metavar='N',
        help='numbers of labelled images (default: an eighth, a quarter, a half and all of them)',
    )  # fmt: skip
    return parser.parse_args()


def prepare(args: argparse.Namespace) -> list[StudyRun]:
    """Writes the configs of all runs."""
    from mmseg_cct.config.load import chosen_method
    from mmseg_cct.studies.learning_curve import BASELINE, nested_subsets
    from mmseg_cct.studies.study import prepare_study

    chosen = chosen_method(args.config, args.cfg_options)
    if chosen == BASELINE:
        raise UserError(f'method {chosen}', 'is the baseline itself', 'another --method')
    options = dict(args.cfg_options)
    # without --method the config trains as it is
    methods = {BASELINE: BASELINE, Path(chosen).stem: options.pop('method', None)}
    labels = nested_subsets(args.config, options, args.n)
    return prepare_study(Path(args.out), args.config, methods, labels, args.seeds, options)


def main() -> None:
    """Runs the study."""
    args = parse_args()
    with running(args):
        from mmseg_cct.studies.learning_curve import write_learning_curve

        tools = Path(__file__).parent
        raise SystemExit(run_study(args, lambda: prepare(args), write_learning_curve, tools))


if __name__ == '__main__':
    main()
