"""Arguments that tools share, and user errors as one line."""

import argparse
import errno
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

import torch
import torch.distributed
from mmengine.config import DictAction

from mmseg_cct.errors import UserError

from .library_errors import TRACEBACK_VARIABLE
from .text import error_line

_PATIENCE = 5.0  # seconds that ranks leave one another to report a mistake
# What each launcher tells a process: its rank, its rank on this machine, and their number.
_RANKS = ('RANK', 'LOCAL_RANK', 'WORLD_SIZE')
_LAUNCHERS = {
    'pytorch': (_RANKS, 'torchrun or tools/dist_*.sh'),
    'slurm': (('SLURM_PROCID', 'SLURM_LOCALID', 'SLURM_NTASKS'), 'srun or tools/slurm_*.sh'),
    'mpi': (
        ('OMPI_COMM_WORLD_RANK', 'OMPI_COMM_WORLD_LOCAL_RANK', 'OMPI_COMM_WORLD_SIZE'),
        'mpirun of Open MPI',
    ),
}
# What a disk or a path refuses: no bug, so a line and no traceback.
_ENVIRONMENT = {
    getattr(errno, name)
    for name in (
        'EACCES', 'EDQUOT', 'EEXIST', 'EIO', 'EISDIR', 'ELOOP', 'EMFILE', 'ENAMETOOLONG', 'ENOENT',
        'ENOSPC', 'ENOTDIR', 'ENOTEMPTY', 'EPERM', 'EROFS',
    )
}  # fmt: skip


# Where this process holds the store, ranks that have still to ask need it to the very end.
_kept_stores: list[torch.distributed.Store] = []


def add_common_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the options that training and testing have in common.

    Args:
        parser: Where to add them.
    """
    add_cfg_options(parser)
    add_launcher(parser)


def add_launcher(parser: argparse.ArgumentParser) -> None:
    """Adds the options of a run on several processes; `set_ranks` reads them.

    Args:
        parser: Where to add them.
    """
    parser.add_argument(
        '--launcher',
        choices=['none', *_LAUNCHERS],
        default='none',
        help='what started the processes of a distributed run; dist_*.sh and slurm_*.sh set it',
    )
    # torch.distributed.launch passes it, in either spelling; torchrun sets LOCAL_RANK.
    parser.add_argument('--local_rank', '--local-rank', type=int, default=0, help=argparse.SUPPRESS)


def set_ranks(args: argparse.Namespace) -> None:
    """Sets the variables that torchrun sets, whatever the launcher is.

    Called before anything is said or downloaded, so that one process says and downloads it.

    Args:
        args: Parsed options of `add_launcher`.

    Raises:
        UserError: This launcher did not start the process.
    """
    os.environ.setdefault('LOCAL_RANK', str(args.local_rank))
    if args.launcher == 'none':
        return
    names, starters = _LAUNCHERS[args.launcher]
    for name, source in zip(_RANKS, names):
        if source not in os.environ:
            raise UserError(
                f'--launcher {args.launcher}: {source} is not set; expected to be started by '
                f'{starters}'
            )
        os.environ[name] = os.environ[source]
    if args.launcher == 'slurm':
        # A port by job, so that two on one node do not meet; below those that systems give away.
        os.environ.setdefault('MASTER_PORT', str(20000 + int(os.environ['SLURM_JOB_ID']) % 10000))
        os.environ.setdefault('MASTER_ADDR', _first_slurm_node())


def _first_slurm_node() -> str:
    if os.environ.get('SLURM_NNODES') == '1':
        return '127.0.0.1'
    command = ['scontrol', 'show', 'hostnames', os.environ['SLURM_NODELIST']]
    return subprocess.run(command, text=True, capture_output=True, check=True).stdout.split()[0]


def add_cfg_options(parser: argparse.ArgumentParser) -> None:
    """Adds the option for settings of the config.

    Args:
        parser: Where to add it.
    """
    parser.add_argument(
        '--cfg-options',
        nargs='+',
        action=_Settings,
        default={},
        metavar='KEY=VALUE',
        help='settings of the config to override, as in train_cfg.max_iters=2000; a list is '
        'key="[a,b]" or key=a,b, without spaces',
    )


class _Settings(DictAction):
    """mmengine's action for `KEY=VALUE`, with a line where there is no `=`."""

    def __call__(
        self, parser: argparse.ArgumentParser, namespace: Any, values: Any, option: Any = None
    ) -> None:
        """Reads the values."""
        for value in values:
            key, equals, _ = value.partition('=')
            if not (key.strip('. ') and equals):
                raise argparse.ArgumentError(self, f'{value!r}; expected KEY=VALUE without spaces')
        super().__call__(parser, namespace, values, option)


def _device(value: str) -> str:
    expected = 'expected cpu, cuda, cuda:1 or mps'
    try:
        device = torch.device(value)
    except RuntimeError:
        raise argparse.ArgumentTypeError(f'{value!r}; {expected}') from None
    if device.type not in ('cpu', 'cuda', 'mps'):
        raise argparse.ArgumentTypeError(f'{value!r}; {expected}')
    if device.type == 'mps' and not torch.backends.mps.is_available():
        raise argparse.ArgumentTypeError(f'{value}; this machine has none')
    if device.type == 'cuda' and (device.index or 0) >= torch.cuda.device_count():
        raise argparse.ArgumentTypeError(f'{value}; there are {torch.cuda.device_count()} GPUs')
    return value


def add_device(parser: argparse.ArgumentParser) -> None:
    """Adds the option for the device that a single process uses.

    Args:
        parser: Where to add it.
    """
    parser.add_argument(
        '--device', type=_device, help='cpu, cuda:1, ... (default: the first GPU, else the CPU)'
    )


def add_overwrite(parser: argparse.ArgumentParser) -> None:
    """Adds the option to replace an existing output file.

    Args:
        parser: Where to add it.
    """
    parser.add_argument('--overwrite', action='store_true', help='replace the file if it exists')


def at_least(minimum: int) -> Callable[[str], int]:
    """Makes a type for options: whole numbers from a minimum.

    Args:
        minimum: The smallest.

    Returns:
        For `add_argument(type=...)`.
    """

    def parse(value: str) -> int:
        if not value.isdecimal() or int(value) < minimum:
            raise argparse.ArgumentTypeError(f'{value}; expected {minimum} or more')
        return int(value)

    return parse


def seed(value: str) -> int:
    """Reads a seed, as a type for options.

    Args:
        value: What the command line says.

    Returns:
        The seed, which NumPy and torch take.

    Raises:
        argparse.ArgumentTypeError: It is no whole number from 0 to 2³² - 1.
    """
    if not value.isdecimal() or int(value) >= 2**32:
        raise argparse.ArgumentTypeError(f'{value}; expected 0 to {2**32 - 1}')
    return int(value)


@contextmanager
def user_errors_as_one_line() -> Iterator[None]:
    """Ends the process with one line on stderr and exit code 2 at a user's error.

    In a distributed run the first rank to meet a mistake prints it; others that meet the same one
    say nothing.

    Yields:
        Nothing; the body runs inside.

    Raises:
        SystemExit: With code 2 in place of a `UserError`, or of what a disk, a path or the memory
            of a GPU refuses.
        OSError: Of another kind, which is a bug.
        torch.cuda.OutOfMemoryError: As `UserError`.
        UserError: The environment variable `MMSEG_CCT_TRACEBACK` asks for the traceback.
    """
    try:
        yield
        return
    except UserError as error:
        if os.environ.get(TRACEBACK_VARIABLE):
            raise
        if _is_first_to_say(str(error)):
            _print_error(str(error))
        _wait_for_others_to_ask(str(error))
    except torch.cuda.OutOfMemoryError as error:
        if os.environ.get(TRACEBACK_VARIABLE):
            raise
        _print_error(
            f'{error_line(error, 200)}; expected what fits: a smaller batch_size or crop, in a '
            'training also --amp or model.auxiliary_head.position_fraction below 1'
        )
    except OSError as error:
        if error.errno not in _ENVIRONMENT:
            raise
        place = f'{error.filename}: ' if error.filename else ''
        _print_error(f'{place}{error.strerror}')
    _leave_group()
    raise SystemExit(2)


def _print_error(line: str) -> None:
    print(f'error: {line}', file=sys.stderr, flush=True)


def _is_first_to_say(message: str) -> bool:
    try:
        # Ranks that wait in a reduction cannot be asked, but the store answers at any time.
        store = torch.distributed.distributed_c10d._get_default_store()
        _kept_stores.append(store)
        return store.add(_key(message), 1) == 1
    except (RuntimeError, ValueError):  # no process group, or the machine that began it is gone
        if os.environ.get('RANK', '0') != '0':
            # Rank 0 has met the same mistake, most likely, and its end ends this process. If not,
            # this process speaks; and rank 0 has had the time to, before its launcher ends it.
            time.sleep(_PATIENCE)
        return True


def _wait_for_others_to_ask(message: str) -> None:
    """Keeps rank 0, whose end is the store's, until the others that met the mistake have asked."""
    if not torch.distributed.is_initialized() or torch.distributed.get_rank() != 0:
        return
    end = time.monotonic() + _PATIENCE  # a rank in a reduction never asks
    with suppress(RuntimeError):  # the store is gone
        while _kept_stores[-1].add(_key(message), 0) < torch.distributed.get_world_size():
            if time.monotonic() > end:
                return
            time.sleep(0.02)


def _key(message: str) -> str:
    return f'mmseg_cct/error/{message}'


def _leave_group() -> None:
    # Its threads may abort a process that ends without leaving. NCCL's would wait for other ranks.
    if torch.distributed.is_initialized() and torch.distributed.get_backend() == 'gloo':
        torch.distributed.destroy_process_group()
