"""Configs and tools that ship with this package and with MMSegmentation.

As in every package of OpenMMLab they lie in the package's folder `.mim`; in a checkout that holds
links to the folders of the project.
"""

import ast
import shlex
from pathlib import Path

from mmseg_cct.errors import UserError
from mmseg_cct.utils.suggest import close_names

_SHIPPED = Path(__file__).parents[1] / '.mim'
CONFIGS, TOOLS = _SHIPPED / 'configs', _SHIPPED / 'tools'
SCOPE = 'mmseg_cct'


def find_config(name: str) -> str:
    """Finds a config by its path, or a shipped one by its short name.

    Args:
        name: A path; or a path below `configs`, with or without that folder, `mmseg_cct::` and
            `.py`, such as `cct/cct_r50_folder`.

    Returns:
        The path of the file.

    Raises:
        UserError: There is no such file, and no such shipped config.
    """
    if Path(name).is_file():
        return name
    short = name.removeprefix(f'{SCOPE}::').removeprefix('configs/').removesuffix('.py')
    if (CONFIGS / f'{short}.py').is_file():
        return str(CONFIGS / f'{short}.py')
    known = [
        path.relative_to(CONFIGS).with_suffix('').as_posix() for path in CONFIGS.glob('*/*.py')
    ]
    close = [f'{name}.py' for name in close_names(short, known, cutoff=0.8)]
    hint = f'; did you mean {" or ".join(close)}?' if close else ''
    raise UserError(f'{name}: no such config file{hint}')


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
