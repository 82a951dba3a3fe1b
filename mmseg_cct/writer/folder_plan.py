"""Decides what the config of a folder says where the user has not chosen."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

import torch

from mmseg_cct.datasets.files.image_files import find_images, read_list
from mmseg_cct.datasets.files.layouts import VAL_LIST, is_validation, training_dirs
from mmseg_cct.datasets.folder_summary import FolderSummary, summarize_folder
from mmseg_cct.datasets.hold_out import hold_out
from mmseg_cct.errors import UserError
from mmseg_cct.utils.text import counted

from .backbones import BACKBONES
from .choices import PRESETS, Choices
from .folder_classes import classes_of_folder, context_of_classes, reject_void_names
from .image_sizes import ImageSizes, choose_sizes

# A class with a smaller share of the labelled pixels is rare: cross-entropy may never find it.
RARE_SHARE = 0.02


class Folder(NamedTuple):
    """What is in a folder."""

    data: str
    classes: tuple[str, ...]
    context: tuple[str, ...]  # classes that are not objects
    images: Mapping[str, str]  # their files by name
    summary: FolderSummary
    left_out: list[str]  # files in `images` that are no images


class Plan(NamedTuple):
    """What follows from the folder, where the user has not chosen."""

    sizes: ImageSizes
    iters: int
    batch_size: int
    val_list: Path | None  # the images to validate on; None if there is a folder `val`
    held_out: list[str]  # their names
    partly_labeled: list[str]  # names of images that are trained both with and without labels
    partly_list: Path | None  # of these
    rare: list[str]  # classes with a small share of the labelled pixels


def look_at(data: str, choices: Choices) -> Folder:
    """Reads names, images and masks of a folder before anything is decided."""
    classes = classes_of_folder(data, choices.classes, choices.force)
    context = context_of_classes(classes, choices.context)
    reject_void_names(data, classes, choices.context)
    left_out: list[str] = []
    images = find_images(training_dirs(data)[0], left_out=left_out)
    options = choices.mask_suffix, choices.channels, choices.bits
    summary = summarize_folder(data, classes, images, *options)
    return Folder(data, classes, context, images, summary, left_out)


def plan_config(folder: Folder, config_path: Path, choices: Choices) -> Plan:
    """Decides what the user has left open: sizes, length, validation images, losses."""
    preset, summary = PRESETS[choices.preset], folder.summary
    sizes = choose_sizes(
        summary.size, summary.widths, BACKBONES[choices.backbone], preset.longest,
        choices.size, choices.crop, may_window=choices.preset != 'quick',
    )  # fmt: skip
    own_list, val_list = Path(folder.data, VAL_LIST), None
    if not summary.validation:
        val_list = own_list if own_list.exists() else config_path.with_name(VAL_LIST)
    redraws = choices.force and val_list != own_list
    held_out = _held_out(summary.labels, val_list, redraws) if val_list else []
    uses_unlabeled = choices.method != 'supervised'
    partly = [n for n in summary.partly_labeled if uses_unlabeled and n not in held_out]
    if uses_unlabeled and not summary.unlabeled and not partly:
        remedy = 'images without one, --method supervised, or lists of mmseg-cct make-splits'
        raise UserError(training_dirs(folder.data)[0], 'every image has a mask', remedy)
    min_pixels = RARE_SHARE * int(summary.pixels.sum())
    return Plan(
        sizes,
        choices.iters or preset.iters,
        choices.batch_size or preset.batch_size,
        val_list,
        held_out,
        partly,
        config_path.with_name(f'{config_path.stem}_partly.txt') if partly else None,
        [name for name, n in zip(folder.classes, summary.pixels) if 0 < n < min_pixels],
    )


def plan_notes(folder: Folder, plan: Plan, backbone: str) -> Iterator[str]:
    """Tells what was decided."""
    if BACKBONES[backbone].halves_crops and torch.cuda.is_available():
        yield f'a GPU is there, and {backbone} needs none; for a larger encoder: --backbone r50'
    if plan.rare:
        yield f'rare: {", ".join(plan.rare)}; the config adds the Lovász loss'
    if number := len(plan.partly_labeled):
        drawn = f'partly drawn: of {counted(number, "mask")} more than half is ignored (255)'
        yield f'{drawn}; these images are unlabelled ones, too'
    yield from plan.sizes.notes
    if plan.val_list == Path(folder.data, VAL_LIST):
        yield f'validation: the images that {plan.val_list} names'
    parents = {Path(name).parent for name in plan.held_out}
    if parts := [str(parent) for parent in sorted(parents) if is_validation(parent.parts)]:
        yield f'validation: the masks of {training_dirs(folder.data)[1]}/{", ".join(parts)}'


def _held_out(labeled: Mapping[str, frozenset[int]], val_list: Path, redraw: bool) -> list[str]:
    """Names the labelled images to validate on: those of earlier configs, to be comparable."""
    if len(labeled) < 2:
        raise UserError('masks', 'one mask, and no folder val to validate on', 'two masks or more')
    if redraw or not val_list.exists():
        chosen = [name for name in labeled if is_validation(name.split('/')[:-1])]
        return chosen if 0 < len(chosen) < len(labeled) else hold_out(labeled)
    held_out = read_list(val_list)
    if missing := [name for name in held_out if name not in labeled]:
        expected = 'a list of labelled images, another --out, or --force to draw a new list'
        raise UserError(val_list, f'{missing[0]} has no mask', expected)
    return held_out
