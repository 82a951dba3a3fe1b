"""Rounds of labelling: configs of one folder, what they were given and how they differ."""

import ast
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from mmseg_cct.config.shipped import command_line, next_round
from mmseg_cct.errors import UserError
from mmseg_cct.utils.files import read_utf8

_OPTIONS = '# Options: '
_FOLDER = re.compile(r'# .+ on (.+): \d+ labelled and ')


@dataclass(frozen=True)
class Choices:
    """What a user may choose for the config of a folder."""

    classes: Sequence[str] | None = None  # in the order of their ids; else those of `classes.json`
    context: Sequence[str] | None = None  # classes that are not objects; else the background
    backbone: str = 'mbv2'  # a key of `BACKBONES`
    method: str = 'cct-strong'
    # Width and height that images are resized into, scaled by 0.5 to 2 in training; else their own,
    # with a longest side of 512 at most. Where that would lose the objects of a class, it is their
    # own size, of which crops are trained on and windows predicted.
    size: tuple[int, int] | None = None
    crop: tuple[int, int] | None = None  # of the training; else `size`, for MobileNetV2 half of it
    iters: int = 4000
    batch_size: int = 8  # pairs of a labelled and an unlabelled image
    mask_suffix: str = '.png'
    channels: Sequence[int] | None = None  # to load, counted from 0; else all except opacity
    bits: int | None = None  # of the images' values; else as many as the values need
    weights: str | None = None  # file of the backbone's weights; else those of the model zoo
    from_scratch: bool = False  # whether to start from random weights
    force: bool = False  # whether to overwrite files


def plain_name(data: str) -> str:
    """Names a folder's config: the folder's, with dashes for spaces and special characters."""
    return re.sub(r'[^\w.-]+', '-', Path(data).resolve().name)


def options_line(choices: Choices) -> str:
    """Records the choices in a config, whose name says method and backbone."""
    named = {'method', 'backbone', 'force'}
    values = {
        field.name: value
        for field in fields(Choices)
        if field.name not in named and (value := getattr(choices, field.name)) != field.default
    }
    return f'{_OPTIONS}{json.dumps(values)}'


def choices_before(data: str, out: str, given: Mapping[str, Any]) -> tuple[Path, Choices] | None:
    """Finds the latest config of a folder and what it was given, apart from what is given now.

    None without a config there, or if several are of other methods or backbones than each other.
    """
    end = f'_{plain_name(data)}'
    names = [path.stem.removesuffix(end).split('_') for path in Path(out).glob(f'*{end}.py')]
    found = [
        dict(method=name[0], backbone=name[1])
        for name in names
        if len(name) == 2 and name == [given.get('method', name[0]), given.get('backbone', name[1])]
    ]
    if len(found) != 1:
        return None
    (own,) = found
    latest = latest_round(Path(out, f'{own["method"]}_{own["backbone"]}{end}.py'))
    if latest is None:
        return None
    lines = read_utf8(latest, 'a config').splitlines()
    text = next((line for line in lines if line.startswith(_OPTIONS)), f'{_OPTIONS}{{}}')
    try:
        values = json.loads(text.removeprefix(_OPTIONS))
    except ValueError:  # edited by hand
        values = {}
    known = {field.name for field in fields(Choices)} - {'force'}
    earlier = {
        key: tuple(value) if isinstance(value, list) else value
        for key, value in values.items()
        if key in known
    }
    if given.keys() & {'weights', 'from_scratch'}:  # they exclude each other
        earlier = {k: v for k, v in earlier.items() if k not in ('weights', 'from_scratch')}
    return latest, Choices(**{**earlier, **own, **given})


def latest_round(first: Path) -> Path | None:
    """Finds the last of `NAME.py`, `NAME-round2.py` and so on; None if there is none yet."""
    latest, following = None, first
    while following.exists():
        latest, following = following, next_round(following)
    return latest


def require_new_round(latest: Path, title: str) -> None:
    """Rejects a round of the same masks as the latest, or of another folder.

    The title, the config's first line, names the folder and the numbers of images.
    """
    earlier = _read(latest).split('\n')[0]
    if earlier == title:
        expected = 'more masks, another --out, or --force'
        raise UserError(latest, 'exists for this number of masks', expected)
    folders = [match and Path(match[1]).resolve() for match in map(_FOLDER.match, (earlier, title))]
    if all(folders) and folders[0] != folders[1]:
        raise UserError(latest, f'is a config of {folders[0]}', 'another --out')


def changes_since(latest: Path, text: str) -> Iterator[str]:
    """Warns of variables that the config `text` does not set as the latest round does."""
    before, now = map(_variables, (_read(latest), text))
    if names := sorted(name for name in before | now if before.get(name) != now.get(name)):
        yield (
            f'{", ".join(names)}: not as in {latest}; expected the same, by the same options, if '
            'the rounds are to be compared'
        )


def _read(config: Path) -> str:
    return read_utf8(config, 'a config')


def _variables(text: str) -> dict[str, str]:
    """The values of a config by name, in one spelling."""
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
