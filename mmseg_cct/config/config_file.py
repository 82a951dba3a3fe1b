"""Finds the file of a config and those that it builds on, without importing torch."""

import ast
from collections.abc import Iterator
from pathlib import Path

from mmseg_cct.errors import UserError
from mmseg_cct.utils.text import nearest

from .shipped import CONFIGS, SCOPE


def find_config(name: str) -> str:
    """Finds the file of a config by its path, or by the short name of a shipped one.

    A short name is a path below `configs`, with or without that folder, `mmseg_cct::` and `.py`,
    such as `cct/cct_r50_folder`, or the file's name alone.
    """
    if Path(name).is_file():
        return name
    short = name.removeprefix(f'{SCOPE}::').removeprefix('configs/').removesuffix('.py')
    if (CONFIGS / f'{short}.py').is_file():
        return str(CONFIGS / f'{short}.py')
    folders = 'cct', 'multi_domain', 'demo', 'weak'
    known = {path.stem: path for each in folders for path in sorted((CONFIGS / each).glob('*.py'))}
    if short in known:
        return str(known[short])
    paths = [path.relative_to(CONFIGS).as_posix() for path in known.values()]
    raise UserError(name, 'no such config file', nearest(f'{short}.py', paths, '', cutoff=0.8))


def require_bases(file: str | Path, above: tuple[Path, ...] = ()) -> None:
    """Checks that the files are there that a config names as its `_base_`, and theirs.

    Names of packages are left to mmengine, as is a config that is no Python. `above` are the
    configs that build on the file.
    """
    above = (*above, Path(file).resolve())
    for base in _relative_bases(file):
        path = Path(file).parent / base
        if not path.is_file():
            raise UserError(f'{file}: _base_', f'no file {path}', 'a path relative to this config')
        if path.resolve() in above:
            raise UserError(f'{file}: _base_', f'{path} builds on this config', 'no circle')
        require_bases(path, above)


def _relative_bases(file: str | Path) -> Iterator[str]:
    try:
        lines = ast.parse(Path(file).read_bytes()).body
    except (SyntaxError, ValueError, OSError, RecursionError, MemoryError):
        return
    for line in lines:
        if isinstance(line, ast.Assign) and ast.unparse(line.targets[0]) == '_base_':
            try:
                named = ast.literal_eval(line.value)
            except ValueError:  # a call, such as `bases(...)`
                continue
            for base in named if isinstance(named, (list, tuple)) else [named]:
                if isinstance(base, str) and base.endswith('.py') and ':' not in base:
                    yield base
