"""Configs and tools, found by path or by the name of one that ships, and the names of runs.

As in every OpenMMLab package, an installation has them in the folder `.mim`, which `setup.py`
makes; a checkout that is not installed has its own. Nothing here imports torch.
"""

import ast
import re
import shlex
import shutil
from pathlib import Path
from typing import Any

from mmseg_cct.errors import UserError
from mmseg_cct.utils.text import close_names, nearest

_SHIPPED = Path(__file__).parents[1] / '.mim'
if not _SHIPPED.is_dir():
    _SHIPPED = _SHIPPED.parents[1]
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
    docstring = ast.get_docstring(ast.parse(script.read_text(encoding='utf-8'))) or ''
    return docstring.partition('\n')[0]


def composed_name(stem: str, method: Any, labels: int | None) -> str:
    """Names a run `METHOD_MODEL_DATA_LABELS`, if the config's stem has that form.

    `method` is a name or the path of a file. None stands for the config's own method or labels,
    and an overlay has no name.
    """
    if isinstance(method, str):
        own, _, rest = stem.partition('_')
        rest = rest if own in method_names() and rest else stem
        stem = f'{Path(method).stem}_{rest}'
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


def next_commands(file: Path, method: str) -> tuple[str, ...]:
    """Commands that train a config's method and its baseline and compare them."""
    trainings = [command_line('train', file)]
    runs = [f'{method}=work_dirs/{file.stem}']
    if method != 'supervised':
        baseline = composed_name(file.stem, 'supervised', None)
        trainings.append(command_line('train', file, '--method', 'supervised'))
        runs.insert(0, f'supervised=work_dirs/{baseline}')
    return *trainings, command_line('report', *runs, '--out', 'work_dirs/report')


def commands_after_training(
    work_dir: Path, name: str, domain: str | None = None
) -> tuple[str, ...]:
    """Commands that use and judge a trained model; of several domains, `domain` is one."""
    here = Path.cwd()
    work_dir = work_dir.relative_to(here) if work_dir.is_relative_to(here) else work_dir
    of = () if domain is None else ('--domain', domain)
    predict = 'predict', work_dir, 'IMAGES', *of, '--out', work_dir / 'predictions'
    report = 'report', f'{name}={work_dir}', '--out', work_dir / 'report'
    return tuple(command_line(*each) for each in ([predict] if of else [predict, report]))


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
    siblings = [path.as_posix() for path in Path(name).parent.glob('*.py')]
    near = close_names(f'{name.removesuffix(".py")}.py', siblings, 0.8)
    paths = [path.relative_to(CONFIGS).as_posix() for path in known.values()]
    expected = nearest(f'{short}.py', near or paths, '', cutoff=0.8)
    raise UserError(name, 'no such config file', expected)


def find_run(place: str | Path, checkpoint: str | Path | None = None) -> str:
    """Finds the config of a run: a work directory has one, and a checkpoint is given with another.

    `place` is the work directory, a checkpoint in it, or the config.
    """
    place = Path(place)
    if checkpoint is None and place.suffix == '.pth':
        place = place.parent
    elif checkpoint is None and not place.is_dir():
        siblings = sorted(path.name for path in place.parent.glob('*') if path.is_dir())
        expected = nearest(place.name, siblings, 'a work directory, or a config and its checkpoint')
        raise UserError(place, 'no such work directory', expected)
    if not place.is_dir():
        return find_config(str(place))
    configs = sorted(place.glob('*.py'))
    if len(configs) != 1:
        names = ', '.join(path.name for path in configs) or 'no config'
        raise UserError(place, f'holds {names}; name the config and the checkpoint instead')
    return str(configs[0])
