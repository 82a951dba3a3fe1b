"""Counts and checks the images and masks of a folder."""

from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from mmseg_cct.datasets.files.image_files import (
    Dirs,
    find_images,
    masks_of_images,
    training_dirs,
    validation_dirs,
)
from mmseg_cct.datasets.files.images import IdOfColor, image_size, read_mask
from mmseg_cct.datasets.files.labels import IGNORE_INDEX, check_mask
from mmseg_cct.datasets.files.object_widths import ObjectWidths
from mmseg_cct.errors import UserError, raise_problems
from mmseg_cct.utils.templates import markdown_table

from .image_values import ImageValues, measure_images

if TYPE_CHECKING:
    from .transforms import LoadChannels

# The labels in masks, ignored ones included, by the name of the image.
Labels = Mapping[str, frozenset[int]]

_SIZES = 200  # number of images whose sizes and values are read, at most


class FolderSummary(NamedTuple):
    """Contents of a folder with `images/`, `masks/` and perhaps `val/`."""

    labels: Labels  # of the images that have a mask
    unlabeled: int  # number of images without one
    validation: Labels  # of the images in `val`; empty without that folder
    size: tuple[int, int]  # median width and height of the images
    pixels: np.ndarray  # (C,) number of pixels of each class in the masks
    ignored: int  # number of ignored pixels
    widths: Mapping[str, float]  # of the objects of each class, see `ObjectWidths`
    partly_labeled: Sequence[str] = ()  # names of images most of whose mask is ignored
    values: ImageValues | None = None  # if MMSegmentation's loader would change the images

    def sides(self, held_out: Collection[str]) -> tuple[Labels, Labels]:
        """Divides the labels by name into those to train and those to validate on."""
        trained = {name: labels for name, labels in self.labels.items() if name not in held_out}
        return trained, self.validation or {name: self.labels[name] for name in held_out}


def summarize_folder(
    data: str | Path,
    classes: Sequence[str],
    images: Mapping[str, str],
    mask_suffix: str = '.png',
    channels: Sequence[int] | None = None,
    bits: int | None = None,
    image_suffix: str | None = None,
) -> FolderSummary:
    """Counts images and masks, and checks every id in the masks.

    `images` are those in the folder of images, as `find_images` finds them. `channels` and `bits`
    say which channels are loaded, and how many bits their values have.

    Raises:
        UserError: If a folder is missing or empty, an image in `val` has no mask, a mask has no
            image, another size or an unknown id, or a file is unreadable.
    """
    masks = _masks_by_name(images, training_dirs(data), mask_suffix)
    # how to load the images, from a sample of them: masks are compared with what the loader gives
    paths = list(images.values())
    sample = paths[:: -(-len(paths) // _SIZES)]
    values = measure_images(sample, channels, bits)
    loader = None if values is None else _loader(values)
    # every mask, since one wrong id ends a training
    widths = ObjectWidths(classes)
    id_of_color = IdOfColor()
    labels, counts, partly = _count_ids(images, masks, len(classes), id_of_color, loader, widths)
    validation: Labels = {}
    # a folder of validation images has masks for all of them
    if val := validation_dirs(data):
        val_images = find_images(val[0], image_suffix)
        val_masks = _masks_by_name(val_images, val, mask_suffix)
        if missing := sorted(val_images.keys() - val_masks.keys()):
            expected = f'{val[1] / missing[0]}{mask_suffix}'
            raise UserError(val_images[missing[0]], 'no mask for this image', expected)
        validation, _, _ = _count_ids(val_images, val_masks, len(classes), id_of_color, loader)
    sizes, problems = list[tuple[int, int]](), list[UserError]()
    for path in sample:
        try:
            sizes.append(image_size(path, None, False, loader))
        except UserError as error:
            problems.append(error)
    raise_problems(problems)
    width, height = np.median(sizes, 0).astype(int).tolist()
    return FolderSummary(
        labels=labels,
        unlabeled=len(images) - len(labels),
        validation=validation,
        size=(width, height),
        pixels=counts[:-1],
        ignored=int(counts[-1]),
        widths=widths.typical(),
        partly_labeled=partly,
        values=values,
    )


def describe_folder(
    summary: FolderSummary, classes: Sequence[str], held_out: Collection[str] = ()
) -> str:
    """Describes a summary in Markdown, with a table of the classes.

    `held_out` are the labelled images held out for validation when there is no `val` folder.
    """
    num_labeled = max(int(summary.pixels.sum()), 1)
    sides = summary.sides(held_out)
    rows = []
    for index, (name, pixels) in enumerate(zip(classes, summary.pixels.tolist())):
        masks = [str(sum(index in labels for labels in side.values())) for side in sides]
        rows.append([name, f'{100 * pixels / num_labeled:.1f} %', *masks])
    if summary.ignored:
        share = 100 * summary.ignored / (num_labeled + summary.ignored)
        rows.append(['ignored', f'{share:.1f} % of all', '', ''])
    number = len(summary.validation)
    validation = f'{number} to validate on' if number else 'no folder val'
    if held_out:
        train, validate = map(len, sides)
        validation += f', so {train} labelled images train and {validate} validate'
    values = f'{summary.values.description}\n\n' if summary.values else ''
    return (
        f'{len(summary.labels)} labelled and {summary.unlabeled} unlabelled images of '
        f'{summary.size[0]}x{summary.size[1]} pixels (median), {validation}\n\n{values}'
        f'{markdown_table(["class", "labelled pixels", "masks to train", "to validate"], rows)}'
    )


def _loader(values: ImageValues) -> 'LoadChannels':
    from mmseg.registry import TRANSFORMS

    from . import transforms  # noqa: F401

    return TRANSFORMS.build(values.loader)


def _masks_by_name(images: Mapping[str, str], dirs: Dirs, suffix: str) -> dict[str, str]:
    image_dir, mask_dir = dirs
    masks, strays = masks_of_images(mask_dir, suffix, images)
    if strays:
        problem = f'a mask without an image in {image_dir} ({len(strays)} in all)'
        expected = 'an image of the same name, but for --image-suffix and --mask-suffix'
        raise UserError(strays[0], problem, expected)
    if not masks:
        raise UserError(mask_dir, 'no mask in this folder', f'class ids, NAME{suffix}')
    return masks


def _count_ids(
    images: Mapping[str, str],
    masks: Mapping[str, str],
    num_classes: int,
    id_of_color: IdOfColor,
    loader: 'LoadChannels | None' = None,
    widths: ObjectWidths | None = None,
) -> tuple[Labels, np.ndarray, list[str]]:
    """Finds the labels in each mask, and counts the pixels of each class `(C + 1,)`.

    Ignored pixels are counted last. The third result names the partly labelled images.
    """
    counts, labels, partly_labeled = np.zeros(num_classes + 1, np.int64), {}, []
    for name, path in masks.items():
        ids, image = read_mask(path, id_of_color=id_of_color), images[name]
        size = image_size(image, None, False, loader)
        check_mask(path, ids, num_classes, image=image, size=size)
        present, pixels = np.unique(ids.astype(np.int64), return_counts=True)
        labels[name] = frozenset(present.tolist())
        if widths is not None:
            widths.add(ids)
        # Finished masks have less, for void and borders; here labels teach the smaller part.
        if pixels[present == IGNORE_INDEX].sum() > ids.size / 2:
            partly_labeled.append(name)
        present[present == IGNORE_INDEX] = num_classes
        np.add.at(counts, present, pixels)
    return labels, counts, partly_labeled
