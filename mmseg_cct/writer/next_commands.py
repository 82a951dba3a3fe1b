"""The commands that train and compare a written config."""

from pathlib import Path

from mmseg_cct.config.compose import composed_name
from mmseg_cct.config.shipped import command_line


def next_commands(file: Path, method: str) -> tuple[str, ...]:
    """Commands that train a setting's method and its baseline and compare them, one per line."""
    trainings = [command_line('train', file)]
    runs = [f'{method}=work_dirs/{file.stem}']
    if method != 'supervised':
        trainings.append(command_line('train', file, '--method', 'supervised'))
        baseline = composed_name(file.stem, 'supervised', None)
        runs.insert(0, f'supervised=work_dirs/{baseline}')
    return *trainings, command_line('report', *runs, '--out', 'work_dirs/report')
