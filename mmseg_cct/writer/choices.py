"""What a user may choose for the config of a folder; needs no torch."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from mmseg_cct.errors import UserError

from .backbones import BACKBONES


class Preset(NamedTuple):
    """How long a training is, and how much a step costs."""

    title: str
    longest: int  # side that images are resized to, if they are larger, in pixels
    batch_size: int  # pairs of a labelled and an unlabelled image
    iters: int


PRESETS = {
    'quick': Preset('a first look, minutes on a CPU', 256, 4, 600),
    'normal': Preset('an evening on a CPU', 512, 8, 6000),
    'long': Preset('where the gain of CCT was largest', 512, 8, 12000),
}


@dataclass(frozen=True)
class Choices:
    """What a user may choose; None leaves it to the folder or the preset."""

    classes: Sequence[str] | None = None  # in the order of their ids; else those of `classes.json`
    context: Sequence[str] | None = None  # classes that are not objects; else the background
    backbone: str = 'mbv2'  # a key of `BACKBONES`
    method: str = 'cct-strong'
    preset: str = 'normal'  # a key of `PRESETS`
    # Width and height that images are resized into, scaled by 0.5 to 2 in training. Where the
    # default would lose the objects of a class, crops are trained on and windows predicted.
    size: tuple[int, int] | None = None
    crop: tuple[int, int] | None = None  # of the training; else `size`, for MobileNetV2 half of it
    iters: int | None = None
    batch_size: int | None = None
    mask_suffix: str = '.png'
    channels: Sequence[int] | None = None  # to load, counted from 0; else all except opacity
    bits: int | None = None  # of the images' values; else as many as the values need
    weights: str | None = None  # file of the backbone's weights; else those of the model zoo
    from_scratch: bool = False  # whether to start from random weights
    force: bool = False  # whether to overwrite files


def plain_name(data: str) -> str:
    """Names a folder's config: the folder's, with dashes for spaces and special characters."""
    return re.sub(r'[^\w.-]+', '-', Path(data).resolve().name)


def check_choices(data: str, choices: Choices) -> None:
    """Checks what can be checked before torch is imported, which takes seconds.

    Raises:
        UserError: There is no such folder or file, or a size is no multiple of the stride.
    """
    if not Path(data).is_dir():
        raise UserError(data, 'no such folder', 'a folder with images and masks')
    has_masks, table = Path(data, 'masks').is_dir(), Path(data, 'classes.json')
    if has_masks and choices.classes is None and not table.is_file():  # an export has names
        raise UserError('--classes', 'missing', f'the class names, or {table}')
    BACKBONES[choices.backbone].require_multiples('--size', choices.size)
    BACKBONES[choices.backbone].require_multiples('--crop', choices.crop)
    if choices.weights and not Path(choices.weights).is_file():
        raise UserError('--weights', f'{choices.weights} is not a file', 'a checkpoint')
