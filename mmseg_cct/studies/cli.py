"""Command-line options and main routine of studies."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from mmseg_cct.cli.arguments import add_cfg_options, at_least, seed
from mmseg_cct.errors import UserError
from mmseg_cct.utils.files import require_own_folder
from mmseg_cct.utils.text import counted

if TYPE_CHECKING:
    from .execution import StudyRun


def add_study_arguments(parser: argparse.ArgumentParser, takes_method: bool) -> None:
    """Adds the options that all studies share."""
    parser.add_argument('config', help='a config of CCT: what all runs have in common')
    parser.add_argument('--out', required=True, metavar='DIR', help='folder of the study')
    parser.add_argument(
        '--seeds', nargs='+', type=seed, default=[0], metavar='SEED', help='default: 0'
    )
    where = parser.add_mutually_exclusive_group()
    where.add_argument(
        '--gpus', type=gpu_ids, metavar='0,1,2', help='GPUs, one run on each at a time'
    )
    where.add_argument(
        '--jobs',
        type=at_least(1),
        default=1,
        metavar='N',
        help='runs at a time on CPUs (default: 1)',
    )
    parser.add_argument(
        '--collect', action='store_true', help='train nothing, write the tables of what is there'
    )
    add_cfg_options(parser, takes_method)


def gpu_ids(text: str) -> list[str]:
    """Parses comma-separated ids of GPUs, as a `type` for options."""
    ids = [name.strip() for name in text.split(',')]
    if not all(ids) or len(set(ids)) < len(ids):
        raise argparse.ArgumentTypeError(f'{text}; expected different ids with commas, as in 0,1,2')
    return ids


def slots_of(gpus: Sequence[str] | None, jobs: int) -> list[dict[str, str]]:
    """Makes the environment variables of each slot, which takes one run at a time."""
    return [{}] * jobs if gpus is None else [{'CUDA_VISIBLE_DEVICES': name} for name in gpus]


def run_study(
    args: argparse.Namespace,
    prepare: Callable[[], Sequence[StudyRun]],
    write: Callable[[Path], Path],
    tools: Path,
) -> int:
    """Runs what is left of a study and writes its report, also after Ctrl-C.

    `write` returns the path of the report, and `tools` is the folder of `train.py` and `test.py`.
    Returns the exit code: 0, 1 if a run failed, or 130 after Ctrl-C.
    """
    from .execution import execute
    from .study import changed_data

    out, code = Path(args.out), 0
    require_own_folder(out, '*/*/seed*/config*.py')  # config.tmp.py if the first is unfinished
    if args.collect:
        if not out.is_dir():
            raise UserError(out, 'no such folder', 'that of a study')
    else:
        slots = slots_of(args.gpus, args.jobs)
        try:
            failures = execute(prepare(), tools, slots)
        except KeyboardInterrupt:
            failures, code = [], 130
            print('stopped; the same command goes on from here', file=sys.stderr)
            if not out.is_dir():  # before the first run was prepared
                return code
        if failures:
            code = 1
            unfinished = counted(len(failures), 'unfinished run')
            print(f'{unfinished}:', *failures, sep='\n', file=sys.stderr)
    if changed := changed_data(out):
        print(f'warning: {changed}; their results do not compare', file=sys.stderr)
    print(f'wrote {write(out)}')
    return code
