"""Configs and tools that ship with this package and with MMSegmentation.

As in every OpenMMLab package, they are in the package's folder `.mim`; in a checkout, this folder
holds links to the folders of the project.
"""

import ast
import shlex
import shutil
from pathlib import Path

_SHIPPED = Path(__file__).parents[1] / '.mim'
CONFIGS, TOOLS = _SHIPPED / 'configs', _SHIPPED / 'tools'
METHODS = CONFIGS / 'methods'
SCOPE = 'mmseg_cct'
# The method that leaves a config as it is.
PLAIN = 'cct'
# What `--help` says of methods: those that one trains; the others compare single changes.
METHODS_HELP = (
    'cct, cct-strong, cct-plus, supervised, fixmatch, unimatch, unimatch-v2, mean-teacher, another '
    'one of docs/how_a_run_is_put_together.md#method'
)


def method_names() -> list[str]:
    """Lists the shipped methods, `cct` first."""
    return [PLAIN, *sorted(path.stem for path in METHODS.glob('*.py'))]


def commands() -> dict[str, Path]:
    """Lists the scripts of the shipped tools by command, which has `-` for `_`."""
    return {path.stem.replace('_', '-'): path for path in sorted(TOOLS.glob('*.py'))}


def command_line(name: str, *arguments: str | Path) -> str:
    """Returns the command line that runs a tool: its script in a checkout, else the package's."""
    script = f'tools/{name}.py'
    # a script of an environment that is not activated is not found by its name
    package = ['mmseg-cct'] if shutil.which('mmseg-cct') else ['python', '-m', 'mmseg_cct']
    tool = ['python', script] if Path(script).is_file() else [*package, name.replace('_', '-')]
    return shlex.join([*tool, *map(str, arguments)])


def summary(script: Path) -> str:
    """Reads the first line of a script's docstring without running it."""
    return (ast.get_docstring(ast.parse(script.read_text(encoding='utf-8'))) or '').partition('\n')[
        0
    ]
