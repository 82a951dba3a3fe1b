"""Rounds of labelling: settings of one folder, each written after more masks were added."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

from mmseg_cct.config.shipped import command_line
from mmseg_cct.errors import UserError
from mmseg_cct.utils.files import read_utf8
from mmseg_cct.utils.rounds import next_round

_FOLDER = re.compile(r'# .+ on (.+): \d+ labelled and ')


def latest_round(first: Path) -> Path | None:
    """Finds the last of `NAME.py`, `NAME-round2.py` and so on; None if there is none yet."""
    latest, following = None, first
    while following.exists():
        latest, following = following, next_round(following)
    return latest


def require_new_round(latest: Path, title: str) -> None:
    """Rejects a round of the same masks as the latest, or of another folder.

    The title, the setting's first line, names the folder and the numbers of images.
    """
    earlier = _read(latest).split('\n')[0]
    if earlier == title:
        raise UserError(
            latest, 'exists for this number of masks', 'more masks, another --out, or --force'
        )
    folders = [match and Path(match[1]).resolve() for match in map(_FOLDER.match, (earlier, title))]
    if all(folders) and folders[0] != folders[1]:
        raise UserError(latest, f'is a setting of {folders[0]}', 'another --out')


def changes_since(latest: Path, text: str) -> Iterator[str]:
    """Warns of variables that the setting `text` does not set as the latest round does."""
    before, now = map(_variables, (_read(latest), text))
    if names := sorted(name for name in before | now if before.get(name) != now.get(name)):
        yield (
            f'{", ".join(names)}: not as in {latest}; expected the same, by the same options, if '
            'the rounds are to be compared'
        )


def _read(setting: Path) -> str:
    return read_utf8(setting, 'a setting')


def _variables(text: str) -> dict[str, str]:
    """The values of a setting by name, in one spelling."""
    try:
        lines = ast.parse(text).body
    except SyntaxError:  # told when it is used
        return {}
    assigned = [line for line in lines if isinstance(line, ast.Assign)]
    return {ast.unparse(line.targets[0]): ast.unparse(line.value) for line in assigned}


def report_of_rounds(first: Path, latest: Path, root: str) -> tuple[str, ...]:
    """The command that compares all rounds up to the latest, of work directories in `root`.

    There is none for the first.
    """
    files = [first]
    while files[-1] != latest:
        files.append(next_round(files[-1]))
    if len(files) == 1:
        return ()
    runs = [f'round{number}={root}/{file.stem}' for number, file in enumerate(files, 1)]
    return (command_line('report', *runs, '--out', f'{root}/rounds_{first.stem}'),)
