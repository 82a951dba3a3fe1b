"""Rounds of labelling: settings of one folder, each written after more masks were added."""

from pathlib import Path

from mmseg_cct.config.shipped import command_line
from mmseg_cct.errors import UserError
from mmseg_cct.utils.files import read_utf8
from mmseg_cct.utils.rounds import next_round


def file_of_round(file: Path, title: str) -> Path:
    """Names the file of a setting: `NAME.py`, or `NAME-round2.py` if that exists, and so on.

    The title, the setting's first line, gives the numbers of images. The same title as in the
    latest setting is a `UserError`.
    """
    latest, following = None, file
    while following.exists():
        latest, following = following, next_round(following)
    if latest and read_utf8(latest, 'a setting').split('\n')[0] == title:
        raise UserError(
            f'{latest}: exists for this number of masks; expected more masks, another --out, or '
            '--force'
        )
    return following


def report_of_rounds(first: Path, latest: Path) -> tuple[str, ...]:
    """The command that compares all rounds up to the latest; none for the first."""
    files = [first]
    while files[-1] != latest:
        files.append(next_round(files[-1]))
    if len(files) == 1:
        return ()
    runs = [f'round{number}=work_dirs/{file.stem}' for number, file in enumerate(files, 1)]
    return (command_line('report', *runs, '--out', f'work_dirs/rounds_{first.stem}'),)
