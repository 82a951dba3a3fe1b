"""The command lines that tools print, for a person to run next."""

import shlex
import shutil
from pathlib import Path


def command_line(name: str, *arguments: str | Path) -> str:
    """Returns the command line that runs a tool."""
    # a script of an environment that is not activated is not found by its name
    package = ['mmseg-cct'] if shutil.which('mmseg-cct') else ['python', '-m', 'mmseg_cct']
    return shlex.join([*package, name.replace('_', '-'), *map(str, arguments)])
