"""Configs and tools, found by path or by the name of one that ships, and the names of runs.

Nothing here imports torch.
"""

import re
from pathlib import Path
from typing import Any

import mmseg_cct
from mmseg_cct.errors import UserError
from mmseg_cct.utils.text import close_names, nearest

SCOPE = 'mmseg_cct'
CONFIGS = Path(*mmseg_cct.bases(f'{SCOPE}::'))
TOOLS = CONFIGS.parent / 'tools'
METHODS = CONFIGS / 'methods'
# The method that leaves a config as it is.
PLAIN = 'cct'


def method_names() -> list[str]:
    """Lists the shipped methods, `cct` first."""
    return [PLAIN, *sorted(path.stem for path in METHODS.glob('*.py'))]


def method_in_name(config_file: str | None) -> str | None:
    """Returns the method with which the name of a config begins, if it is a shipped one."""
    method = Path(config_file or '').stem.partition('_')[0]
    return method if method in method_names() else None


def composed_name(stem: str, method: Any, labels: int | None) -> str:
    """Names a run `METHOD_MODEL_DATA_LABELS`, if the config's stem has that form.

    `method` is a name or the path of a file. None stands for the config's own method or labels,
    and an overlay has no name.
    """
    if isinstance(method, str):
        setting = stem.partition('_')[2] if method_in_name(stem) else ''
        stem = f'{Path(method).stem}_{setting or stem}'
    if labels is not None:
        stem = f'{re.sub(r"_[0-9]+$", "", stem)}_{labels}'
    return stem


def next_round(path: Path) -> Path:
    """Names the file or folder of the next round: `mine-round2`, then `mine-round3`."""
    if path.name in ('', '..'):
        path = path.resolve()
    suffix = '.py' if path.suffix == '.py' else ''  # a folder's name may have a dot, too
    stem, number = path.name.removesuffix(suffix), 1
    if match := re.fullmatch(r'(.+)-round([0-9]+)', stem):
        stem, number = match[1], int(match[2])
    return path.with_name(f'{stem}-round{number + 1}{suffix}')


def free_round(path: Path) -> Path:
    """Names the first round that does not exist yet, `path` itself or one after it."""
    while path.exists():
        path = next_round(path)
    return path


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
    folders = [CONFIGS / folder for folder in ('cct', 'multi_domain', 'demo', 'weak')]
    shipped = {path.stem: path for folder in folders for path in sorted(folder.glob('*.py'))}
    if short in shipped:
        return str(shipped[short])
    siblings = [path.as_posix() for path in Path(name).parent.glob('*.py')]
    near = close_names(f'{name.removesuffix(".py")}.py', siblings, 0.8)
    paths = [path.relative_to(CONFIGS).as_posix() for path in shipped.values()]
    expected = nearest(f'{short}.py', near or paths, '', cutoff=0.8)
    raise UserError(name, 'no such config file', expected)


def find_run(run_path: str | Path, checkpoint: str | Path | None = None) -> str:
    """Finds the config of a run: a work directory has one, and a checkpoint is given with another.

    `run_path` is the work directory, a checkpoint in it, or the config.
    """
    run_path = Path(run_path)
    if checkpoint is None and run_path.suffix == '.pth':
        run_path = run_path.parent
    elif checkpoint is None and not run_path.is_dir():
        expected = 'a work directory, or a config and its checkpoint'
        raise UserError(run_path, 'no such work directory', expected)
    if not run_path.is_dir():
        return find_config(str(run_path))
    configs = sorted(run_path.glob('*.py'))
    if len(configs) != 1:
        names = ', '.join(path.name for path in configs) or 'no config'
        raise UserError(run_path, f'holds {names}; name the config and the checkpoint instead')
    return str(configs[0])
