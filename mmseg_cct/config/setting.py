"""Finds the file of a setting and those that it builds on, without importing torch."""

import ast
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from mmseg_cct.errors import UserError
from mmseg_cct.utils.text import close_names

from .shipped import CONFIGS, PLAIN, SCOPE, method_names


class Setting(NamedTuple):
    """A setting's file, and the method and the number of labels if a composed name gives them."""

    file: str
    method: str | None = None
    labels: int | None = None


def find_setting(name: str) -> Setting:
    """Finds a setting by its path, by the short name of a shipped one, or by a composed name.

    A short name is a path below `configs`, with or without that folder, `mmseg_cct::` and `.py`,
    such as `cct/cct_r50_folder`; a composed one is `METHOD_MODEL_DATA_LABELS`. An unknown name is a
    `UserError`.
    """
    if Path(name).is_file():
        return Setting(name)
    short = name.removeprefix(f'{SCOPE}::').removeprefix('configs/').removesuffix('.py')
    if (CONFIGS / f'{short}.py').is_file():
        return Setting(str(CONFIGS / f'{short}.py'))
    known = {
        path.stem: path
        for folder in ('cct', 'multi_domain', 'demo', 'weak')
        for path in sorted((CONFIGS / folder).glob('*.py'))
    }
    if composed := _compose(short, known):
        return composed
    paths = [path.relative_to(CONFIGS).with_suffix('').as_posix() for path in known.values()]
    close = [f'{near}.py' for near in close_names(short, paths, cutoff=0.8)]
    rests = [stem.removeprefix(f'{PLAIN}_') for stem in known if stem.startswith(f'{PLAIN}_')]
    grid = [f'{method}_{rest}' for method in method_names() for rest in rests]
    close = close or close_names(short, grid, cutoff=0.8)
    hint = f'; did you mean {" or ".join(close)}?' if close else ''
    raise UserError(name, f'no such config file{hint}')


def _compose(name: str, known: Mapping[str, Path]) -> Setting | None:
    """Reads `METHOD_REST_LABELS`, where REST names a shipped setting; None for other names."""
    if name in known:
        return Setting(str(known[name]))
    method, _, rest = name.partition('_')
    if method not in method_names() or not rest:
        return None
    chosen = None if method == PLAIN else method
    if setting := known.get(f'{PLAIN}_{rest}'):
        return Setting(str(setting), chosen)
    stem, _, number = rest.rpartition('_')
    if not number.isdecimal():
        return None
    # if there are several sizes, the next smaller one: more labels take longer to learn
    sizes = {
        int(match[1]): path
        for other, path in known.items()
        if (match := re.fullmatch(rf'{PLAIN}_{re.escape(stem)}_(\d+)', other))
    }
    if not sizes:
        return None
    size = max((size for size in sizes if size <= int(number)), default=min(sizes))
    return Setting(str(sizes[size]), chosen, int(number))


def composed_name(stem: str, method: Any, labels: int | None) -> str:
    """Names a run `METHOD_MODEL_DATA_LABELS`, if the setting's stem has that form.

    `method` is a name or the path of a file. None stands for the setting's own method or labels,
    and an overlay has no name.
    """
    if isinstance(method, str):
        own, _, rest = stem.partition('_')
        rest = rest if own in method_names() and rest else stem
        stem = f'{Path(method).stem}_{rest}'
    if labels is not None:
        stem = f'{re.sub(r"_[0-9]+$", "", stem)}_{labels}'
    return stem


def require_bases(file: str | Path) -> None:
    """Checks that the files are there that a config names as its `_base_`, and theirs.

    Names of packages are left to mmengine, as is a config that is no Python.
    """
    for base in _relative_bases(file):
        path = Path(file).parent / base
        if not path.is_file():
            raise UserError(f'{file}: _base_', f'no file {path}', 'a path relative to this config')
        require_bases(path)


def _relative_bases(file: str | Path) -> Iterator[str]:
    try:
        lines = ast.parse(Path(file).read_bytes()).body
    except (SyntaxError, ValueError, OSError):
        return
    for line in lines:
        if isinstance(line, ast.Assign) and ast.unparse(line.targets[0]) == '_base_':
            try:
                named = ast.literal_eval(line.value)
            except ValueError:  # a call, such as `bases(...)`
                continue
            for base in [named] if isinstance(named, str) else named:
                if isinstance(base, str) and base.endswith('.py') and ':' not in base:
                    yield base
