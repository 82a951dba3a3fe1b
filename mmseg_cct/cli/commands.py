"""The tools as commands: which there are, and the command lines to run next."""

import ast
import shlex
import shutil
from pathlib import Path

from mmseg_cct.config.shipped import TOOLS, composed_name


def commands() -> dict[str, Path]:
    """Lists the scripts of the shipped tools by command, which has `-` for `_`."""
    return {path.stem.replace('_', '-'): path for path in sorted(TOOLS.glob('*.py'))}


def summary(script: Path) -> str:
    """Reads the first line of a script's docstring without running it."""
    docstring = ast.get_docstring(ast.parse(script.read_text(encoding='utf-8'))) or ''
    return docstring.partition('\n')[0]


def command_line(name: str, *arguments: str | Path) -> str:
    """Returns the command line that runs a tool."""
    # a script of an environment that is not activated is not found by its name
    package = ['mmseg-cct'] if shutil.which('mmseg-cct') else ['python', '-m', 'mmseg_cct']
    return shlex.join([*package, name.replace('_', '-'), *map(str, arguments)])


def next_commands(config_path: Path, method: str) -> tuple[str, ...]:
    """Commands that train a config's method and its baseline and compare them."""
    trainings = [command_line('train', config_path)]
    runs = [f'{method}=work_dirs/{config_path.stem}']
    if method != 'supervised':
        baseline = composed_name(config_path.stem, 'supervised', None)
        trainings.append(command_line('train', config_path, '--method', 'supervised'))
        runs.insert(0, f'supervised=work_dirs/{baseline}')
    return *trainings, command_line('report', *runs, '--out', 'work_dirs/report')


def commands_after_training(
    work_dir: Path, name: str, domain: str | None = None
) -> tuple[str, ...]:
    """Commands that use and judge a trained model; of several domains, `domain` is one."""
    if work_dir.is_relative_to(Path.cwd()):
        work_dir = work_dir.relative_to(Path.cwd())
    domain_option = () if domain is None else ('--domain', domain)
    return (
        command_line(
            'predict', work_dir, 'IMAGES', *domain_option, '--out', work_dir / 'predictions'
        ),
        command_line('report', f'{name}={work_dir}', *domain_option, '--out', work_dir / 'report'),
    )
