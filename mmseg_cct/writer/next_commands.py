"""The commands that train and compare a written config."""

from pathlib import Path

from mmseg_cct.config.setting import composed_name
from mmseg_cct.config.shipped import command_line

WORK_DIRS = 'work_dirs'


def next_commands(file: Path, method: str, root: str = WORK_DIRS) -> tuple[str, ...]:
    """Commands that train a setting's method and its baseline and compare them, one per line.

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
