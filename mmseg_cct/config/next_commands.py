"""The commands that come next: after a config is written, and after a training."""

from pathlib import Path

from .config_file import composed_name
from .shipped import command_line

WORK_DIRS = 'work_dirs'


def next_commands(file: Path, method: str, root: str = WORK_DIRS) -> tuple[str, ...]:
    """Commands that train a config's method and its baseline and compare them, one per line.

    `root` is the folder of the work directories.
    """

    def train(name: str, *options: str) -> str:
        place = () if root == WORK_DIRS else ('--work-dir', f'{root}/{name}')
        return command_line('train', file, *options, *place)

    trainings = [train(file.stem)]
    runs = [f'{method}={root}/{file.stem}']
    if method != 'supervised':
        baseline = composed_name(file.stem, 'supervised', None)
        trainings.append(train(baseline, '--method', 'supervised'))
        runs.insert(0, f'supervised={root}/{baseline}')
    return *trainings, command_line('report', *runs, '--out', f'{root}/report')


def commands_after_training(
    config: Path, checkpoint: Path, name: str, domain: str | None = None
) -> tuple[str, ...]:
    """Commands that use and judge a trained model, one per line.

    `config` lies in the work directory, and `name` is that of the training. `domain` is one of the
    domains, if the model has several; then there is no report.
    """
    config, checkpoint = _from_here(config), _from_here(checkpoint)
    work_dir = config.parent
    of = () if domain is None else ('--domain', domain)
    predict = 'predict', config, checkpoint, 'IMAGES', *of, '--out', work_dir / 'predictions'
    report = 'report', f'{name}={work_dir}', '--out', work_dir / 'report'
    return tuple(command_line(*each) for each in ([predict] if of else [predict, report]))


def _from_here(path: Path) -> Path:
    """Shortens the path of a file below the working directory."""
    here = Path.cwd()
    return path.relative_to(here) if path.is_relative_to(here) else path
