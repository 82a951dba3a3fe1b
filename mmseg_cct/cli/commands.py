"""The tools as commands."""

import ast
from pathlib import Path

from mmseg_cct.config.shipped import TOOLS


def commands() -> dict[str, Path]:
    """Lists the scripts of the shipped tools by command, which has `-` for `_`."""
    return {path.stem.replace('_', '-'): path for path in sorted(TOOLS.glob('*.py'))}


def summary(script: Path) -> str:
    """Reads the first line of a script's docstring without running it."""
    docstring = ast.get_docstring(ast.parse(script.read_text(encoding='utf-8'))) or ''
    return docstring.partition('\n')[0]
