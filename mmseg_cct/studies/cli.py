"""What the command lines of the studies share."""

import argparse
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from mmseg_cct.errors import UserError
from mmseg_cct.utils.cli import add_cfg_options

from .runs import StudyRun, execute


def add_study_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the options that all studies have.

    Args:
        parser: Where to add them.
    """
    parser.add_argument('config', help='a config of CCT: what all runs have in common')
    parser.add_argument('--out', required=True, metavar='DIR', help='folder of the study')
    parser.add_argument(
        '--seeds', nargs='+', type=int, default=[0], metavar='SEED', help='default: 0'
    )
    where = parser.add_mutually_exclusive_group()
    where.add_argument('--gpus', metavar='0,1,2', help='GPUs, one run on each at a time')
    where.add_argument(
        '--jobs', type=int, default=1, metavar='N', help='runs at a time on CPUs (default: 1)'
    )
    parser.add_argument(
        '--collect', action='store_true', help='train nothing, write the tables of what is there'
    )
    add_cfg_options(parser)


def slots_of(gpus: str | None, jobs: int) -> list[dict[str, str]]:
    """Reads where runs may be.

    Args:
        gpus: Ids with commas between them; None for CPUs.
        jobs: Runs at a time without `gpus`.

    Returns:
        The environment variables of each place.

    Raises:
        UserError: If there is none.
    """
    if gpus is not None:
        ids = [name.strip() for name in gpus.split(',')]
        if not all(ids) or len(set(ids)) < len(ids):
            raise UserError(f'--gpus {gpus}: expected different ids with commas, as in 0,1,2')
        return [{'CUDA_VISIBLE_DEVICES': name} for name in ids]
    if jobs < 1:
        raise UserError(f'--jobs {jobs}: expected 1 or more')
    return [{}] * jobs


def run_study(
    args: argparse.Namespace,
    prepare: Callable[[], Sequence[StudyRun]],
    write: Callable[[Path], Path],
    tools: Path,
) -> int:
    """Does what is left of a study and writes what it gives, also when it is stopped.

    Args:
        args: The command line, with the options of `add_study_arguments`.
        prepare: Makes the runs.
        write: Writes the results of a folder and gives the file to read.
        tools: Folder with `train.py` and `test.py`.

    Returns:
        The exit code: 0, 1 where a run failed, 130 after Ctrl-C.

    Raises:
        UserError: If there is nothing to collect.
    """
    out, code = Path(args.out), 0
    if args.collect:
        if not out.is_dir():
            raise UserError(f'{out}: no such folder; expected that of a study')
    else:
        slots = slots_of(args.gpus, args.jobs)
        try:
            failures = execute(prepare(), tools, slots)
        except KeyboardInterrupt:
            failures, code = [], 130
            print('stopped; the same command goes on from here', file=sys.stderr)
        if failures:
            code = 1
            print(f'{len(failures)} runs are not finished:', *failures, sep='\n', file=sys.stderr)
    print(f'wrote {write(out)}')
    return code
