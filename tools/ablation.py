#!/usr/bin/env python
"""Trains and tests methods over numbers of labels and seeds on any CCT config; compares them.

It writes tables and figures, and prints what each method gains over the baseline with its 95 %
interval and verdict. Run it again to resume: finished runs are skipped, stopped ones continue from
their checkpoints. --grid is the paper's ablation.

Examples:
    mmseg-cct ablation CONFIG -n 20 50 100 --seeds 0 1 2 --gpus 0,1 --out work_dirs/pays
    mmseg-cct ablation CONFIG -n 20 50 100 --seeds 0 1 2 --slurm gpu --time 240 \\
        --sbatch account=me cpus-per-task=8 --out work_dirs/pays
    mmseg-cct ablation configs/cct/cct_r50_camvid-whole_50.py --grid -n 20 50 100 \\
        --seeds 0 1 2 --gpus 0,1,2 --out work_dirs/ablation_camvid
    mmseg-cct ablation configs/cct/cct_mbv2_camvid_50.py --out work_dirs/distances \\
        --methods supervised cct kl js confidence pairwise --seeds 0 1
    mmseg-cct ablation configs/multi_domain/cct_r50_cityscapes-camvid_50.py -n 50 100 \\
        --methods supervised cct cct-adv --seeds 0 1 2 --out work_dirs/domains
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from mmseg_cct.cli.arguments import METHODS_HELP, add_cfg_options, integer_from, method, tool_parser
from mmseg_cct.cli.start import register, running
from mmseg_cct.config.shipped import PLAIN
from mmseg_cct.errors import UserError

if TYPE_CHECKING:
    from mmseg_cct.studies.execution import StudyRun

TOOLS = Path(__file__).parent


def parse_args() -> argparse.Namespace:
    """Reads the command line."""
    parser = tool_parser(__doc__)
    parser.add_argument('config', help='a config of CCT: what all runs have in common')
    parser.add_argument('--out', required=True, metavar='DIR', help='folder of the study')
    parser.add_argument(
        '--methods', nargs='+', type=method, metavar='NAME',
        help=f"{METHODS_HELP}, or files of your own (default: supervised and the config's method)",
    )  # fmt: skip
    parser.add_argument(
        '-n', nargs='+', type=integer_from(1), default=[], metavar='N',
        help="numbers of labelled images (default: the config's own)",
    )  # fmt: skip
    parser.add_argument(
        '--lists', metavar='DIR',
        help='folder of {n}_labeled.txt and {n}_unlabeled.txt; "{seed}" and "{domain}" in its path '
        "stand for those of a run (default: the folder of the config's lists; if it has none, each "
        'seed draws its own labelled images)',
    )  # fmt: skip
    parser.add_argument(
        '--seeds', nargs='+', type=integer_from(0), default=[0], metavar='SEED',
        help='default: 0; a verdict needs three',
    )  # fmt: skip
    parser.add_argument(
        '--grid', action='store_true',
        help='the baseline, and for each K each perturbation alone and full CCT; also the baseline '
        'and full CCT with ab-CE',
    )  # fmt: skip
    parser.add_argument(
        '--num-decoders', nargs='+', type=integer_from(1), default=[2, 4, 6, 8], metavar='K',
        help='values of K in the grid (default: 2 4 6 8)',
    )  # fmt: skip
    where = parser.add_mutually_exclusive_group()
    where.add_argument(
        '--gpus', type=gpu_ids, metavar='0,1,2', help='GPUs, a run on each at a time'
    )
    where.add_argument(
        '--jobs', type=integer_from(1), default=1, metavar='N',
        help='runs at a time on CPUs (default: 1)',
    )  # fmt: skip
    where.add_argument(
        '--slurm', metavar='PARTITION',
        help='submit each run as a job of an array; the jobs outlive this command, and the same '
        'command waits for those that are in the queue (pip install submitit)',
    )  # fmt: skip
    where.add_argument(
        '--collect', action='store_true', help='train nothing, write the tables of what is there'
    )
    parser.add_argument(
        '--gpus-per-run', type=integer_from(0), default=1, metavar='N',
        help='GPUs of a run, each with a process (default: 1; with --slurm, 0 is a CPU)',
    )  # fmt: skip
    parser.add_argument(
        '--time', type=integer_from(1), default=720, metavar='MINUTES',
        help='with --slurm: time of a job, which is requeued and resumed after it (default: 720)',
    )  # fmt: skip
    parser.add_argument(
        '--sbatch', nargs='+', default=[], metavar='KEY=VALUE',
        help='with --slurm: further options of sbatch, as in account=me cpus-per-task=8 mem=32G',
    )  # fmt: skip
    add_cfg_options(parser, takes_method=False)
    args = parser.parse_args()
    if args.gpus is not None and (not args.gpus_per_run or len(args.gpus) % args.gpus_per_run):
        parser.error(
            f'--gpus-per-run {args.gpus_per_run}: does not divide the {len(args.gpus)} GPUs'
        )
    if wrong := [option for option in args.sbatch if not option.partition('=')[2]]:
        parser.error(f'--sbatch {wrong[0]}; expected KEY=VALUE')
    return args


def gpu_ids(text: str) -> list[str]:
    """Parses comma-separated ids of GPUs, as a `type` for options."""
    ids = [name.strip() for name in text.split(',')]
    if not all(ids) or len(set(ids)) < len(ids):
        raise argparse.ArgumentTypeError(f'{text}; expected different ids with commas, as in 0,1,2')
    return ids


def prepare(args: argparse.Namespace) -> list[StudyRun]:
    """Writes the configs of all runs."""
    from mmseg_cct.config.load import chosen_method
    from mmseg_cct.studies.ablation import BASELINE, grid_methods
    from mmseg_cct.studies.study import Overlay, lists_of, prepare_study, study_config

    options = args.options
    methods: dict[str, str | Overlay | None] = {}
    if args.grid:
        config = study_config(args.config, {**options, 'method': PLAIN})
        methods |= grid_methods(config, args.num_decoders)
    elif args.methods is None:  # the config as it is, with a baseline
        methods = {BASELINE: BASELINE, chosen_method(args.config, options): None}
    named = {Path(name).stem: name for name in args.methods or ()}
    if len(named) < len({*(args.methods or ())}):
        raise UserError('--methods', 'two files of one name')
    methods |= named
    labels = lists_of(args.config, options, args.n, args.lists, args.seeds)
    return prepare_study(Path(args.out), args.config, methods, labels, args.seeds, options)


def main() -> None:
    """Runs the study."""
    args = parse_args()
    with running(args):
        register()
        from mmseg_cct.studies.ablation import run_study
        from mmseg_cct.studies.execution import execute

        def work() -> list[str]:
            runs = prepare(args)
            if args.slurm is not None:
                from mmseg_cct.studies.cluster import execute_on_slurm

                options = dict(option.split('=', 1) for option in args.sbatch)
                return execute_on_slurm(
                    runs, TOOLS, args.slurm, args.gpus_per_run, args.time, options
                )
            if args.gpus is None:
                return execute(runs, TOOLS, [{}] * args.jobs)
            size = args.gpus_per_run
            groups = [args.gpus[i : i + size] for i in range(0, len(args.gpus), size)]
            slots = [{'CUDA_VISIBLE_DEVICES': ','.join(group)} for group in groups]
            return execute(runs, TOOLS, slots, size)

        raise SystemExit(run_study(Path(args.out), None if args.collect else work))


if __name__ == '__main__':
    main()
