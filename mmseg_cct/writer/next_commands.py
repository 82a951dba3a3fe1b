"""What to run after a config is written."""

from pathlib import Path

from mmseg_cct.config.shipped import composed_name
from mmseg_cct.utils.command_line import command_line


def next_commands(config_path: Path, method: str) -> tuple[str, ...]:
    """Commands that train a config's method and its baseline and compare them."""
    trainings = [command_line('train', config_path)]
    runs = [f'{method}=work_dirs/{config_path.stem}']
    if method != 'supervised':
        baseline = composed_name(config_path.stem, 'supervised', None)
        trainings.append(command_line('train', config_path, '--method', 'supervised'))
        runs.insert(0, f'supervised=work_dirs/{baseline}')
    return *trainings, command_line('report', *runs, '--out', 'work_dirs/report')
