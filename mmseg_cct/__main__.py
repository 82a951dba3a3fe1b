"""Command line of an installed package: `mmseg-cct COMMAND`, `python -m mmseg_cct COMMAND`.

Each command is a tool: `mmseg-cct train CONFIG` runs `tools/train.py CONFIG`. With several
processes: `torchrun --nproc-per-node 8 -m mmseg_cct train CONFIG --launcher pytorch`.
"""

import os
import sys

# A stranger's folder is no place of modules: `python -m` has put the current one first.
if sys.path[0] in ('', os.getcwd()):
    sys.path.pop(0)

import runpy
from pathlib import Path

from mmseg_cct.cli import arguments
from mmseg_cct.cli.errors import user_errors_as_one_line
from mmseg_cct.config.shipped import commands, summary
from mmseg_cct.errors import UserError
from mmseg_cct.utils.text import nearest
from mmseg_cct.version import __version__


def main() -> None:
    """Runs the tool that the first argument names, or lists all tools."""
    with user_errors_as_one_line():
        _run(*sys.argv[1:] or ['--help'])


def _run(name: str, *rest: str) -> None:
    """Runs a tool by name."""
    known = commands()
    called = 'python -m mmseg_cct' if Path(sys.argv[0]).suffix == '.py' else Path(sys.argv[0]).stem
    if name == '--version':
        print(f'mmseg_cct {__version__}')
        return
    if name in ('-h', '--help'):
        width = max(map(len, known))
        print(f'usage: {called} COMMAND [arguments]; COMMAND --help lists its arguments\n')
        for command, tool in known.items():
            print(f'{command:{width}}  {summary(tool)}')
        return
    command = name.replace('_', '-')
    script = known.get(command)
    if script is None:
        raise UserError(name, 'no such command', nearest(name, list(known)))
    arguments.program = f'{called} {command}'
    sys.argv[1:] = rest
    runpy.run_path(str(script), run_name='__main__')


if __name__ == '__main__':
    main()
