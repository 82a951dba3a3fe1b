"""What to run after masks are imported, and after a config is written."""

from collections.abc import Sequence
from pathlib import Path

from mmseg_cct.config.shipped import composed_name, free_round
from mmseg_cct.datasets.folder_summary import FolderSummary
from mmseg_cct.utils.text import command_line

from .choices import plain_name


def commands_after_import(
    data: Path, summary: FolderSummary, classes: Sequence[str]
) -> tuple[str, ...]:
    """Commands that train what a data folder holds now: again, if there is a config of it."""
    if len(classes) < 2 or (len(summary.labels) < 2 and not summary.validation):
        return ()  # none trains with so few
    name = plain_name(str(data))
    chosen = None if summary.unlabeled else 'supervised'
    method = ('--method', chosen) if chosen else ()
    for config_path in sorted(Path('configs', name).glob(f'*_{name}.py')):
        from mmseg_cct.config.load import read_config  # brings torch, which takes seconds

        if list(read_config(config_path).get('classes') or ()) == list(classes):
            work_dir = Path('work_dirs', composed_name(config_path.stem, chosen, None))
            options = ('--work-dir', free_round(work_dir)) if work_dir.exists() else ()
            return (command_line('train', config_path, *method, *options),)
    return (command_line('new_config', data, *method),)


def next_commands(
    config_path: Path, method: str, preview: str | None = None, starts_from_it: bool = False
) -> tuple[str, ...]:
    """Commands that train a config's method and its baseline and compare them.

    Args:
        config_path: The config.
        method: Its method.
        preview: The command of a preview of its data into `preview`, which comes first.
        starts_from_it: Whether the training is self-training on the preview's masks instead.

    Returns:
        The commands, in their order.
    """
    options, name = list[str](), config_path.stem
    if starts_from_it:
        method = 'self-training'
        options = ['--method', method, '--weak-masks', 'preview/masks']
        name = composed_name(name, method, None)
    trainings = [*filter(None, [preview]), command_line('train', config_path, *options)]
    runs = [f'{method}=work_dirs/{name}']
    if method != 'supervised':
        baseline = composed_name(config_path.stem, 'supervised', None)
        trainings.append(command_line('train', config_path, '--method', 'supervised'))
        runs.insert(0, f'supervised=work_dirs/{baseline}')
    return *trainings, command_line('report', *runs, '--out', 'work_dirs/report')
