"""Configs and tools that ship with this package and with MMSegmentation.

As in every package of OpenMMLab they lie in the package's folder `.mim`; in a checkout that holds
links to the folders of the project.
"""

import ast
import shlex
from importlib import metadata
from pathlib import Path

from mmengine.config.utils import MODULE2PACKAGE

_SHIPPED = Path(__file__).parents[1] / '.mim'
CONFIGS, TOOLS = _SHIPPED / 'configs', _SHIPPED / 'tools'
SCOPE = 'mmseg_cct'


def register_packages() -> None:
    """Lets `_base_ = 'mmseg_cct::…'` and `'mmseg::…'`, and `mmengine.hub`, find installed configs.

    mmengine looks distributions up in a table, which has the old name of MMSegmentation: it would
    install that one over the maintained one.
    """
    MODULE2PACKAGE[SCOPE] = SCOPE
    try:
        metadata.version('onedl-mmsegmentation')
    except metadata.PackageNotFoundError:  # the original distribution, under the name in the table
        return
    MODULE2PACKAGE['mmseg'] = 'onedl-mmsegmentation'


def commands() -> dict[str, Path]:
    """Lists the shipped tools.

    Returns:
        Script by name of its command, with `-` for `_`.
    """
    return {path.stem.replace('_', '-'): path for path in sorted(TOOLS.glob('*.py'))}


def command_line(name: str, *arguments: str | Path) -> str:
    """Writes what to type to run a tool.

    Args:
        name: The command.
        *arguments: Its arguments.

    Returns:
        The line: of the script where the working directory is a checkout, else of the package.
    """
    script = f'tools/{name}.py'
    tool = [script] if Path(script).is_file() else ['-m', SCOPE, name]
    return shlex.join(['python', *tool, *map(str, arguments)])


def summary(script: Path) -> str:
    """Reads the first line of a script's docstring without running it.

    Args:
        script: The script.

    Returns:
        The line.
    """
    return (ast.get_docstring(ast.parse(script.read_text(encoding='utf-8'))) or '').partition('\n')[
        0
    ]
