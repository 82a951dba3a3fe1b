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
from mmseg_cct.cli.commands import commands, summary
from mmseg_cct.cli.errors import user_errors_as_one_line
from mmseg_cct.errors import UserError
from mmseg_cct.version import __version__


def main() -> None:
    """Runs the tool that the first argument names, or lists all tools."""
    with user_errors_as_one_line():
        name, *options = sys.argv[1:] or ['--help']
        tools, program = commands(), Path(sys.argv[0])
        called = 'python -m mmseg_cct' if program.suffix == '.py' else program.stem
        command = name.replace('_', '-')
        if name == '--version':
            print(f'mmseg_cct {__version__}')
        elif name in ('-h', '--help'):
            width = max(map(len, tools))
            print(f'usage: {called} COMMAND [arguments]; COMMAND --help lists its arguments\n')
            for tool, script in tools.items():
                print(f'{tool:{width}}  {summary(script)}')
        elif command in tools:
            arguments.program = f'{called} {command}'
            sys.argv[1:] = options
            runpy.run_path(str(tools[command]), run_name='__main__')
        else:
            raise UserError(name, 'no such command', f'one of {", ".join(tools)}')


if __name__ == '__main__':
    main()
