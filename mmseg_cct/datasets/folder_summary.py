"""Counts and checks the images and masks of a folder."""

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
from mmseg.registry import TRANSFORMS

from mmseg_cct.errors import UserError
from mmseg_cct.utils.image_files import find_images, find_masks, read_mask, suffix_of_masks
from mmseg_cct.utils.images import image_size
from mmseg_cct.utils.labels import IGNORE_INDEX
from mmseg_cct.utils.markdown import markdown_table
from mmseg_cct.utils.masks import check_mask, require_one_suffix
from mmseg_cct.utils.object_widths import ObjectWidths

from .image_values import ImageValues, measure_images
from .transforms import LoadChannels

_SIZES = 200  # number of images whose sizes and values are read, at most


class FolderSummary(NamedTuple):
    """Contents of a folder with `images/`, `masks/` and perhaps `val/`.

    Attributes:
        labeled: Names of the images with a mask, sorted.
        unlabeled: Number of images without a mask.
        validation: Number of images in `val/images`, all with a mask; 0 without that folder.
        size: Median width and height of the images.
        pixels: `(C,)` number of pixels of each class in the masks.
        ignored: Number of ignored pixels.
        masks: `(C,)` number of masks that show each class.
        labels: Number of masks for each set of labels in a mask, ignored ones included.
        val_labels: The same of the masks in `val/masks`.
        widths: Typical width in pixels of the objects of each class (see `ObjectWidths`).
        values: How to load the images, if MMSegmentation's loader would change them.
    """

    labeled: tuple[str, ...]
    unlabeled: int
    validation: int
    size: tuple[int, int]
    pixels: np.ndarray
    ignored: int
    masks: np.ndarray
    labels: Counter[frozenset[int]]
    val_labels: Counter[frozenset[int]]
    widths: Mapping[str, float]
    values: ImageValues | None = None


def summarize_folder(
    data: str | Path,
    classes: Sequence[str],
    mask_suffix: str = '.png',
    channels: Sequence[int] | None = None,
    bits: int | None = None,
) -> FolderSummary:
    """Counts images and masks, and checks every id in the masks.

    `channels` and `bits` say which channels are loaded, and how many bits their values have.

    A missing or empty folder, an image in `val` without a mask, a mask without an image, an
    unreadable file, a mask of another size or an unknown id is a `UserError`.
    """
    images, masks = Path(data, 'images'), Path(data, 'masks')
    found = find_images(images)
    labeled = _masks_by_name(found, images, masks, mask_suffix)
    paths = list(found.values())
    sample = paths[:: -(-len(paths) // _SIZES)]
    values = measure_images(sample, channels, bits)
    loader = None if values is None else TRANSFORMS.build(values.loader)
    widths = ObjectWidths(classes)
    counts, shown, labels = _count_classes(found, labeled, len(classes), loader, widths)
    validation: dict[str, Path] = {}
    val_labels: Counter[frozenset[int]] = Counter()
    if Path(data, 'val').is_dir():
        images, masks = Path(data, 'val', 'images'), Path(data, 'val', 'masks')
        own = find_images(images)
        validation = _masks_by_name(own, images, masks, mask_suffix)
        if missing := sorted(own.keys() - validation.keys()):
            raise UserError(
                own[missing[0]], 'no mask for this image', f'{masks / missing[0]}{mask_suffix}'
            )
        *_, val_labels = _count_classes(own, validation, len(classes), loader)
    sizes = [image_size(str(path), None, False, loader) for path in sample]
    width, height = np.median(sizes, 0).astype(int).tolist()
    return FolderSummary(
        tuple(labeled),
        len(found) - len(labeled),
        len(validation),
        (width, height),
        counts[:-1],
        int(counts[-1]),
        shown,
        labels,
        val_labels,
        widths.typical(),
        values,
    )


def describe_folder(
    summary: FolderSummary, classes: Sequence[str], held_out: Collection[str] = ()
) -> str:
    """Describes a summary in Markdown, with a table of the classes.

    `held_out` are the labelled images held out for validation when there is no `val` folder.
    """
    labeled = max(int(summary.pixels.sum()), 1)
    rows = [
        [name, f'{100 * pixels / labeled:.1f} %', str(masks)]
        for name, pixels, masks in zip(classes, summary.pixels.tolist(), summary.masks.tolist())
    ]
    if summary.ignored:
        share = 100 * summary.ignored / (labeled + summary.ignored)
        rows.append(['ignored', f'{share:.1f} % of all', ''])
    validation = f'{summary.validation} to validate on' if summary.validation else 'no folder val'
    if held_out:
        kept = len(summary.labeled) - len(held_out)
        validation += f', so {kept} labelled images train and {len(held_out)} validate'
    kind = f'{summary.values.description}\n\n' if summary.values else ''
    return (
        f'{len(summary.labeled)} labelled and {summary.unlabeled} unlabelled images of '
        f'{summary.size[0]}x{summary.size[1]} pixels (median), {validation}\n\n{kind}'
        f'{markdown_table(["class", "labelled pixels", "masks"], rows)}'
    )


def _masks_by_name(
    found: dict[str, Path], images: Path, masks: Path, suffix: str
) -> dict[str, Path]:
    if not masks.is_dir():
        raise UserError(masks, 'no such folder', f'the masks of some of {images}')
    by_name = find_masks(masks, suffix)
    if not by_name:
        raise UserError(masks, 'no mask in this folder', f'files of class ids, NAME{suffix}')
    require_one_suffix(masks, suffix, by_name, found)
    if strays := sorted(by_name.keys() - found.keys()):
        end = suffix_of_masks(by_name, found)
        raise UserError(
            by_name[strays[0]],
            f'a mask without an image in {images} ({len(strays)} in all)',
            f'--mask-suffix {end}{suffix}' if end else 'an image of the same name',
        )
    return by_name


def _count_classes(
    images: dict[str, Path],
    masks: dict[str, Path],
    num_classes: int,
    loader: LoadChannels | None = None,
    widths: ObjectWidths | None = None,
) -> tuple[np.ndarray, np.ndarray, Counter[frozenset[int]]]:
    """Counts the pixels of each class `(C + 1,)`, ignored ones last, and the masks with it `(C,)`.

    The last result is the number of masks for each set of labels in a mask.
    """
    counts, shown = np.zeros(num_classes + 1, np.int64), np.zeros(num_classes, np.int64)
    labels: Counter[frozenset[int]] = Counter()
    for name, path in masks.items():
        ids, image = read_mask(path), images[name]
        size = image_size(str(image), None, False, loader)
        check_mask(path, ids, num_classes, image=image, size=size)
        present, pixels = np.unique(ids.astype(np.int64), return_counts=True)
        labels[frozenset(present.tolist())] += 1
        if widths is not None:
            widths.add(ids)
        present[present == IGNORE_INDEX] = num_classes
        np.add.at(counts, present, pixels)
        shown[present[present < num_classes]] += 1
    return counts, shown, labels
