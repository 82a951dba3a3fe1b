"""Arguments that tools share, and the ranks that a launcher gives."""

import argparse
import os
import subprocess
import sys
from collections.abc import Callable, Collection
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from mmseg_cct.config.shipped import method_names
from mmseg_cct.errors import Problem, UserError
from mmseg_cct.utils.text import nearest
from mmseg_cct.version import __version__

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

Options = TypeVar('Options', bound='DataclassInstance')
# What `--help` says of methods: those that one trains; the others compare single changes.
METHODS_HELP = (
    'cct, cct-strong, cct-plus, supervised, fixmatch, unimatch, unimatch-v2, mean-teacher, another '
    'one of docs/methods.md#method'
)


# How the tool was called, where that is not by its script; `__main__` sets it.
program: str | None = None


def tool_parser(description: str | None, **options: Any) -> argparse.ArgumentParser:
    """Makes a parser with `--version`, whose help keeps the line breaks of a tool's docstring."""
    parser = argparse.ArgumentParser(
        prog=program or f'python {sys.argv[0]}',
        description=description,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        **options,
    )
    parser.add_argument('--version', action='version', version=f'mmseg_cct {__version__}')
    return parser


def options_as(dataclass: type[Options], args: argparse.Namespace) -> Options:
    """Makes a dataclass of the options that have the names of its fields."""
    names = {field.name for field in fields(dataclass)}
    return dataclass(**{name: value for name, value in vars(args).items() if name in names})


class InputPath(str):
    """A file or folder to read, as a `type` for options; `running` checks that it exists."""


def add_run(parser: argparse.ArgumentParser) -> None:
    """Adds a trained network: `run` and `checkpoint`, as `Run.open` takes them."""
    parser.add_argument(
        'run',
        metavar='WORK_DIR|CONFIG',
        help='work directory of a training, or a config, which needs CHECKPOINT',
    )
    parser.add_argument(
        'checkpoint',
        nargs='?',
        type=InputPath,
        metavar='CHECKPOINT',
        help='the weights (default: the last checkpoint in WORK_DIR)',
    )


def add_cfg_options(parser: argparse.ArgumentParser, takes_method: bool = True) -> None:
    """Adds the options that compose a config; `running` puts them into `options`."""
    if takes_method:
        parser.add_argument(
            '--method',
            type=method,
            metavar='NAME',
            help=f"what trains: {METHODS_HELP}, or a file of your own (default: the config's)",
        )
        parser.add_argument(
            '--labels',
            type=integer_from(1),
            metavar='N',
            help="number of labelled images, for which the config's split_dir has lists",
        )
    parser.add_argument(
        '--cfg-options',
        dest='options',
        nargs='+',
        action='extend',
        default=[],
        metavar='KEY=VALUE',
        help='settings of the config to override, as in train_cfg.max_iters=2000; a list is '
        'key="[a,b]" or key=a,b, without spaces',
    )


def add_backbone(parser: argparse.ArgumentParser, names: Collection[str], meaning: str) -> None:
    """Adds the option for an encoder, or a model on one, of those that `new_config` knows."""
    parser.add_argument(
        *('--backbone', '--model'),
        dest='backbone',
        choices=names,
        default='mbv2',
        metavar='NAME',
        help=meaning,
    )


def add_weights(parser: argparse.ArgumentParser, condition: str = '') -> None:
    """Adds the option for a file of the encoder's weights."""
    parser.add_argument(
        '--weights',
        type=InputPath,
        metavar='FILE',
        help=f"{condition}the backbone's weights (default: from the model zoo)",
    )


def add_suffixes(parser: argparse.ArgumentParser) -> None:
    """Adds the options for the ends of names by which images and masks are pairs."""
    parser.add_argument(
        '--image-suffix',
        metavar='END',
        help="end of an image's name that its mask does not have, such as _leftImg8bit or _0000; "
        'other images are left out',
    )
    parser.add_argument(
        '--mask-suffix',
        default='.png',
        metavar='END',
        help="end of a mask's name, after that of its image, such as _mask.png (default: .png)",
    )


def add_domain(parser: argparse.ArgumentParser) -> None:
    """Adds the option that `Run.of_domain` takes."""
    parser.add_argument('--domain', metavar='NAME', help='which domain, of a network of several')


def add_device(parser: argparse.ArgumentParser) -> None:
    """Adds the option for the device of a single process, as torch names it."""
    parser.add_argument('--device', help='cpu, cuda:1, ... (default: the first GPU, else the CPU)')


def add_palette(parser: argparse.ArgumentParser) -> None:
    """Adds the option for the colours of the classes."""
    parser.add_argument(
        '--palette',
        metavar='NAME|FILE',
        help='colours of the classes: of a data set of MMSeg by their names (cityscapes, ade, '
        'voc, ...), or a JSON file of {class: [r, g, b]} (default: those of the training)',
    )


def add_overwrite(parser: argparse.ArgumentParser) -> None:
    """Adds the option to replace an existing output file."""
    parser.add_argument('--overwrite', action='store_true', help='replace the file if it exists')


def integer_from(minimum: int) -> Callable[[str], int]:
    """Makes a `type` for options: whole numbers from a minimum."""

    def parse(value: str) -> int:
        if not value.isdecimal() or int(value) < minimum:
            raise argparse.ArgumentTypeError(f'{value}; expected {minimum} or more')
        return int(value)

    return parse


def method(value: str) -> str:
    """Reads the name of a method or the path of a custom one, as a `type` for options."""
    if value.endswith('.py'):
        if not Path(value).is_file():
            raise argparse.ArgumentTypeError(f'{value}: no such file')
    elif value not in method_names():
        problem = Problem(value, 'no such method', nearest(value, method_names()))
        raise argparse.ArgumentTypeError(str(problem))
    return value


# Each launcher's variables for a process's rank, its rank on this machine, and the world size.
_RANKS = ('RANK', 'LOCAL_RANK', 'WORLD_SIZE')
_LAUNCHERS = {
    'pytorch': (_RANKS, 'torchrun or tools/dist_*.sh'),
    'slurm': (('SLURM_PROCID', 'SLURM_LOCALID', 'SLURM_NTASKS'), 'srun or tools/slurm_*.sh'),
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
    """
    os.environ.setdefault('LOCAL_RANK', str(args.local_rank))
    if args.launcher == 'none':
        return
    names, starters = _LAUNCHERS[args.launcher]
    for name, source in zip(_RANKS, names):
        if source not in os.environ:
            problem = f'{source} is not set'
            expected = f'to be started by {starters}'
            raise UserError(f'--launcher {args.launcher}', problem, expected)
        os.environ[name] = os.environ[source]
    if args.launcher == 'slurm':
        # A port for each job, so that two on one node do not clash; below the ephemeral ports.
        os.environ.setdefault('MASTER_PORT', str(20000 + int(os.environ['SLURM_JOB_ID']) % 10000))
        master = '127.0.0.1'
        if os.environ.get('SLURM_NNODES') != '1':
            command = ['scontrol', 'show', 'hostnames', os.environ['SLURM_NODELIST']]
            done = subprocess.run(command, text=True, capture_output=True, check=True)
            master = done.stdout.split()[0]
        os.environ.setdefault('MASTER_ADDR', master)
