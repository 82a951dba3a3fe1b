"""Reads rank and world size from the variables of a launcher."""

import argparse
import os
import subprocess

from mmseg_cct.errors import UserError

# Each launcher's variables for a process's rank, its rank on this machine, and the world size.
_RANKS = ('RANK', 'LOCAL_RANK', 'WORLD_SIZE')
_LAUNCHERS = {
    'pytorch': (_RANKS, 'torchrun or tools/dist_*.sh'),
    'slurm': (('SLURM_PROCID', 'SLURM_LOCALID', 'SLURM_NTASKS'), 'srun or tools/slurm_*.sh'),
    'mpi': (
        ('OMPI_COMM_WORLD_RANK', 'OMPI_COMM_WORLD_LOCAL_RANK', 'OMPI_COMM_WORLD_SIZE'),
        'mpirun of Open MPI',
    ),
}


def add_launcher(parser: argparse.ArgumentParser) -> None:
    """Adds the options of a run on several processes; `set_ranks` reads them."""
    parser.add_argument(
        '--launcher',
        choices=['none', *_LAUNCHERS],
        default='none',
        help='what started the processes of a distributed run; dist_*.sh and slurm_*.sh set it',
    )
    # torch.distributed.launch passes it, in either spelling; torchrun sets LOCAL_RANK.
    parser.add_argument('--local_rank', '--local-rank', type=int, default=0, help=argparse.SUPPRESS)


def set_ranks(args: argparse.Namespace) -> None:
    """Sets the variables that torchrun sets, whatever launcher started the process.

    Call it before anything is printed or downloaded, which only one process should do.

    Raises:
        UserError: Another launcher started the process.
    """
    os.environ.setdefault('LOCAL_RANK', str(args.local_rank))
    if args.launcher == 'none':
        return
    names, starters = _LAUNCHERS[args.launcher]
    for name, source in zip(_RANKS, names):
        if source not in os.environ:
            raise UserError(
                f'--launcher {args.launcher}',
                f'{source} is not set',
                f'to be started by {starters}',
            )
        os.environ[name] = os.environ[source]
    if args.launcher == 'slurm':
        # A port for each job, so that two on one node do not clash; below the ephemeral ports.
        os.environ.setdefault('MASTER_PORT', str(20000 + int(os.environ['SLURM_JOB_ID']) % 10000))
        os.environ.setdefault('MASTER_ADDR', _first_slurm_node())


def _first_slurm_node() -> str:
    if os.environ.get('SLURM_NNODES') == '1':
        return '127.0.0.1'
    command = ['scontrol', 'show', 'hostnames', os.environ['SLURM_NODELIST']]
    return subprocess.run(command, text=True, capture_output=True, check=True).stdout.split()[0]
