"""What a user may choose for the setting of a folder, and what earlier rounds were given."""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from mmseg_cct.utils.files import read_utf8

from .rounds import latest_round

_OPTIONS = '# Options: '


@dataclass(frozen=True)
class Choices:
    """What a user may choose for the config of a folder.

    Attributes:
        classes: Class names in the order of their ids; by default those of `classes.json`.
        context: Classes that are not objects; by default the background, if there is one.
        backbone: A key of `BACKBONES`.
        method: Name of the method that the config trains.
        size: Width and height that images are resized into, scaled by 0.5 to 2 in training; by
            default their own, with a longest side of 512 at most. Where that would lose the objects
            of a class, the default is their own size, of which crops are trained on and windows
            predicted.
        crop: Width and height of the training crops; by default `size`, for MobileNetV2 half of it.
        iters: Iterations of the training.
        batch_size: Pairs of a labelled and an unlabelled image.
        mask_suffix: End of a mask's name.
        channels: Channels of the images to load, counted from 0; by default all except opacity.
        bits: Bits of the images' values, if the files store them in more; by default as many as the
            values need.
        weights: File of the backbone's weights; by default those of the model zoo.
        from_scratch: Whether to start from random weights.
        force: Whether to overwrite files.
    """

    classes: Sequence[str] | None = None
    context: Sequence[str] | None = None
    backbone: str = 'mbv2'
    method: str = 'cct-strong'
    size: tuple[int, int] | None = None
    crop: tuple[int, int] | None = None
    iters: int = 4000
    batch_size: int = 8
    mask_suffix: str = '.png'
    channels: Sequence[int] | None = None
    bits: int | None = None
    weights: str | None = None
    from_scratch: bool = False
    force: bool = False


def plain_name(data: str) -> str:
    """Names a folder's setting: the folder's, with dashes for spaces and special characters."""
    return re.sub(r'[^\w.-]+', '-', Path(data).resolve().name)


def options_line(choices: Choices) -> str:
    """Records the choices in a setting, whose name says method and backbone."""
    named = {'method', 'backbone', 'force'}
    values = {
        field.name: value
        for field in fields(Choices)
        if field.name not in named and (value := getattr(choices, field.name)) != field.default
    }
    return f'{_OPTIONS}{json.dumps(values)}'


def choices_before(data: str, out: str, given: Mapping[str, Any]) -> tuple[Path, Choices] | None:
    """Finds the latest setting of a folder and what it was given, apart from what is given now.

    None without a setting there, or if several are of other methods or backbones than each other.
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
    lines = read_utf8(latest, 'a setting').splitlines()
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
