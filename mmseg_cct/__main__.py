"""Command line of an installed package: `python -m mmseg_cct COMMAND ...`.

Each command is a tool: `python -m mmseg_cct train CONFIG` runs `tools/train.py CONFIG`.
With several processes: `torchrun --nproc-per-node 8 -m mmseg_cct train CONFIG --launcher pytorch`.
"""

import runpy
import sys

from mmseg_cct.cli.errors import user_errors_as_one_line
from mmseg_cct.config.shipped import commands, summary
from mmseg_cct.errors import UserError
from mmseg_cct.utils.suggest import nearest


def main() -> None:
    """Runs the tool that the first argument names, or lists all tools.

    Raises:
        UserError: There is no such tool.
    """
    known = commands()
    name, *arguments = sys.argv[1:] or ['--help']
    if name in ('-h', '--help'):
        width = max(map(len, known))
        print(
            'usage: python -m mmseg_cct COMMAND [arguments]; COMMAND --help lists its arguments\n'
        )
        for command, tool in known.items():
            print(f'{command:{width}}  {summary(tool)}')
        return
    script = known.get(name.replace('_', '-'))
    if script is None:
        raise UserError(name, 'no such command', nearest(name, list(known)))
    sys.argv[1:] = arguments
    runpy.run_path(str(script), run_name='__main__')


if __name__ == '__main__':
    with user_errors_as_one_line():
        main()
