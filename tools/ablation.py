#!/usr/bin/env python
"""Runs the paper's ablation on any CCT config: trains, tests, writes tables and figures.

Run it again to resume: finished runs are skipped, stopped ones continue from their checkpoints.

Examples:
    python tools/ablation.py configs/cct/cct_r50_camvid-whole_50.py --grid -n 20 50 100 \\
        --seeds 0 1 2 --gpus 0,1,2 --out work_dirs/ablation_camvid
    python tools/ablation.py configs/cct/cct_mbv2_camvid_50.py --out work_dirs/distances \\
        --methods supervised cct kl js confidence pairwise --seeds 0 1
    python tools/ablation.py configs/multi_domain/cct_r50_cityscapes-camvid_50.py -n 50 100 \\
        --methods supervised cct cct-adv --seeds 0 1 2 --out work_dirs/domains
    python tools/ablation.py configs/demo/cct_shapes.py --grid --num-decoders 2 --jobs 2 \\
        --out work_dirs/ablation_demo --cfg-options train_cfg.max_iters=100
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from mmseg_cct.cli.arguments import at_least, method, tool_parser
from mmseg_cct.cli.start import running
from mmseg_cct.config.shipped import METHODS_HELP, PLAIN
from mmseg_cct.errors import UserError
from mmseg_cct.studies.cli import add_study_arguments, run_study

if TYPE_CHECKING:
    from mmseg_cct.studies.execution import StudyRun


def parse_args() -> argparse.Namespace:
    """Reads the command line."""
    parser = tool_parser(__doc__)
    add_study_arguments(parser, takes_method=False)
    parser.add_argument(
        '--grid',
        action='store_true',
        help='the baseline, and for each K each perturbation alone and full CCT; also the baseline '
        'and full CCT with ab-CE',
    )
    parser.add_argument(
        '--num-decoders', nargs='+', type=at_least(1), default=[2, 4, 6, 8], metavar='K',
        help='values of K in the grid (default: 2 4 6 8)',
    )  # fmt: skip
    parser.add_argument(
        '--perturbations', nargs='+', default=[], metavar='NAME',
        help="perturbations in the grid, by their names in the config (default: all of them)",
    )  # fmt: skip
    parser.add_argument(
        '--methods', nargs='+', type=method, default=[], metavar='NAME',
        help=f'methods, with or without the grid: {METHODS_HELP}, or files of your own',
    )  # fmt: skip
    parser.add_argument(
        '-n', nargs='+', type=at_least(1), default=[], metavar='N',
        help="numbers of labelled images (default: the config's own lists)",
    )  # fmt: skip
    parser.add_argument(
        '--lists', metavar='DIR',
        help='folder of {n}_labeled.txt and {n}_unlabeled.txt; "{seed}" and "{domain}" in its path '
        "stand for those of a run (default: the folder of the config's lists)",
    )  # fmt: skip
    args = parser.parse_args()
    if not (args.grid or args.methods or args.collect):
        parser.error('no method; expected --grid, --methods or both')
    return args


def prepare(args: argparse.Namespace) -> list[StudyRun]:
    """Writes the configs of all runs."""
    from mmseg_cct.studies.ablation import grid_methods
    from mmseg_cct.studies.study import Overlay, lists_of, prepare_study, study_config

    options = args.cfg_options
    methods: dict[str, str | Overlay | None] = {}
    if args.grid:
        config = study_config(args.config, {**options, 'method': PLAIN})
        methods |= grid_methods(config, args.num_decoders, args.perturbations)
    for name in args.methods:
        others = [other for other in args.methods if Path(other).stem == Path(name).stem]
        if len({*others}) > 1:
            raise UserError(f'--methods {" ".join(others)}', 'one name', 'files of other names')
        methods[Path(name).stem] = name
    labels = lists_of(args.config, options, args.n, args.lists, args.seeds)
    return prepare_study(Path(args.out), args.config, methods, labels, args.seeds, options)


def main() -> None:
    """Runs the ablation."""
    args = parse_args()
    with running(args):
        from mmseg_cct.studies.ablation import write_ablation

        tools = Path(__file__).parent
        raise SystemExit(run_study(args, lambda: prepare(args), write_ablation, tools))


if __name__ == '__main__':
    main()
