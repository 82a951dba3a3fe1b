"""Decides what the config of a folder says where the user has not chosen, and what is worth a look.

A network sees resized images, or crops and windows of whole ones.
"""

from collections import Counter
from collections.abc import Iterator, Mapping
from math import ceil
from pathlib import Path
from typing import Any, NamedTuple

import torch

from mmseg_cct.datasets.files.image_files import (
    VAL_LIST,
    describe_left_out,
    find_images,
    find_masks,
    is_validation,
    read_list,
    training_dirs,
)
from mmseg_cct.datasets.files.labels import judge_labels
from mmseg_cct.datasets.files.object_widths import SMALLEST
from mmseg_cct.datasets.folder_summary import FolderSummary, summarize_folder
from mmseg_cct.datasets.hold_out import hold_out, one_sided
from mmseg_cct.engine.closed_form import FEWEST_TO_CHOOSE
from mmseg_cct.engine.doubtful_masks import contradictions, fit_masks
from mmseg_cct.engine.frozen_features import FINE, WhitenedFeatures, load_encoder
from mmseg_cct.errors import UserError
from mmseg_cct.utils.text import command_line, counted, one_line

from .choices import BACKBONES, PRESETS, Backbone, Choices
from .folder_classes import classes_of_folder, context_of_classes, reject_void_names

# A class with a smaller share of the labelled pixels is rare: cross-entropy may never find it.
RARE_SHARE = 0.02
# Masks to compare with one another; more take minutes.
_MOST_COMPARED = 100
# Labels up to which a training that starts from a preview was better than others (docs/results.md)
_FEW = 20

Size = tuple[int, int]  # width and height in pixels

_SHORTEST_CROP = 96  # pixels, if no crop is chosen
_NAMED = 8  # classes


class Folder(NamedTuple):
    """What is in a folder."""

    data: str
    classes: tuple[str, ...]
    context: tuple[str, ...]  # classes that are not objects
    images: Mapping[str, str]  # their files by name
    summary: FolderSummary
    left_out: list[str]  # files in `images` that are no images


class ImageSizes(NamedTuple):
    """Sizes of a config, and what to tell about them."""

    size: Size  # of whole images
    crop: Size  # of training crops
    # `model.test_cfg` that predicts images at their own size in windows; else they are resized
    windows: dict[str, Any] | None
    notes: tuple[str, ...]


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
    images = find_images(training_dirs(data)[0], choices.image_suffix, left_out=left_out)
    options = choices.mask_suffix, choices.channels, choices.bits, choices.image_suffix
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


def choose_sizes(
    images: Size,
    widths: Mapping[str, float],
    backbone: Backbone,
    longest: int,
    size: Size | None = None,
    crop: Size | None = None,
    may_window: bool = True,
) -> ImageSizes:
    """Fits images into a longest side, or crops them where the objects of a class would disappear.

    `images` is their typical size, `widths` those of the objects of each class; `size` and `crop`
    are the user's.
    """
    stride, is_chosen = backbone.stride, size is not None
    size = size or fitted(images, stride, longest)
    if crop is None:
        crop = size
        if backbone.halves_crops and min(size) >= 2 * _SHORTEST_CROP:
            width, height = (-(-side // 2 // stride) * stride for side in size)
            crop = width, height
    # rounding to the stride is no shrinking
    shrinks = max(images) > max(size) + stride
    scale = min(new / old for new, old in zip(size, images)) if shrinks else 1.0
    thin = [name for name, width in widths.items() if width * scale < SMALLEST]
    notes, windows = [], None
    shown = f'{size[0]}x{size[1]}'
    if scale < 1 and thin and not is_chosen and may_window:
        window, size, scale = size[::-1], fitted(images, stride, max(images)), 1.0
        steps = 2 * window[0] // 3, 2 * window[1] // 3
        windows = dict(mode='slide', crop_size=window, stride=steps)
        sides = zip(images[::-1], window, steps)
        down, across = (ceil(max(image - part, 0) / step) + 1 for image, part, step in sides)
        lost = f'at {shown}, thin objects would disappear ({", ".join(thin[:_NAMED])})'
        crops = f'it trains on crops at full size and predicts {down * across} windows an image'
        notes.append(f'{lost}, so {crops}; faster: --preset quick, or --size {shown}')
    elif scale < 1:
        notes.append(f'images of {images[0]}x{images[1]} are resized to {shown} (--size)')
    return ImageSizes(size, crop, windows, tuple(notes))


def fitted(images: Size, stride: int, longest: int) -> Size:
    """The size of images in multiples of the stride, and of a longest side at most."""
    scale = min(longest / max(images), 1.0)
    width, height = (max(int(side * scale) // stride, 1) * stride for side in images)
    return width, height


def folder_warnings(folder: Folder, plan: Plan) -> Iterator[str]:
    """Tells what is worth a second look; refuses labels that cannot be meant.

    That is files that are no images, labelled tests, and classes that a side lacks.
    """
    if folder.left_out:
        yield describe_left_out(training_dirs(folder.data)[0], folder.left_out)
    if tests := [name for name in folder.summary.labels if name.lower().startswith('test/')]:
        problem = f'{len(tests)} labelled images of its folder test train, too'
        yield f'{training_dirs(folder.data)[0]}: {problem}; move them out to test on them'
    labels = Counter(folder.summary.labels.values())
    yield from judge_labels(labels, folder.classes, 'masks', dirs=training_dirs(folder.data))
    sides = folder.summary.sides(plan.held_out)
    unseen, untrained = one_sided(*(side.values() for side in sides))
    for ids, split, effect in (
        (unseen, 'validation', 'its IoU cannot be measured'),
        (untrained, 'training', 'it is never learned'),
    ):
        if ids:
            names = ', '.join(folder.classes[index] for index in sorted(ids))
            yield f'masks: no {split} mask contains {names}, so {effect}'


def compare_masks(
    folder: Folder, choices: Choices, model: Any | None
) -> tuple[list[str], list[str]]:
    """Says what the masks are worth without a training (notes), and what is doubtful (warnings).

    The backbone of the `model` gives the features; None, for no weights, compares equal images
    alone.
    """
    if not FEWEST_TO_CHOOSE <= len(folder.summary.labels) <= _MOST_COMPARED:
        return [], []
    warnings, images = [], folder.images
    masks = find_masks(training_dirs(folder.data)[1], choices.mask_suffix)
    try:
        for first, second in contradictions(images, masks):
            warnings.append(f'{first} and {second}: the same image with different masks')
        if model is None:
            return [], warnings
        encoder, pool = load_encoder(model, None, FINE), sorted(images.values())
        features = WhitenedFeatures(encoder, model, pool, folder.data)
        fitted = fit_masks(features, images, masks, len(folder.classes))
    except UserError as error:
        return [], [*warnings, f'masks: not compared with one another: {one_line(error)}']
    doubtful = [mask.name for mask in fitted.judged if mask.is_doubtful]
    warnings += [f'{name}: doubtful, the other masks contradict it' for name in doubtful]
    return [fitted.worth], warnings


def is_best_from_preview(folder: Folder, plan: Plan, choices: Choices) -> bool:
    """Whether there are so few labels that the default is to start from a preview."""
    number = len(folder.summary.sides(plan.held_out)[0])
    return choices.method == Choices.method and number <= _FEW


def preview_command(folder: Folder, plan: Plan, choices: Choices) -> str:
    """The command of a preview by the masks that will be trained on."""
    options = [f'--{key.replace("_", "-")}={end}' for key, end in choices.suffixes.items()]
    options += [f'--held-out={plan.val_list}'] if plan.held_out else []
    options += [f'--backbone={choices.backbone}'] if choices.backbone != Choices.backbone else []
    options += [f'--weights={choices.weights}'] if choices.weights else []
    return command_line('preview', folder.data, *options, '--out', 'preview')
