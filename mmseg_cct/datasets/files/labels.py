"""Labels of pixels: background and ignored ones, names and ids, and the ids of masks."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from mmseg_cct.errors import UserError, printable
from mmseg_cct.utils.text import command_line

BACKGROUND = 'background'

# Ignored pixels, in every mask and at every step after the masks are loaded.
IGNORE_INDEX = 255

_IGNORED_NAMES = {'void', 'ignore', 'ignored', 'unlabelled', 'unlabeled', 'unannotated', 'nolabel'}
_IGNORED_NAMES |= {'dontcare', 'donotcare'}


def is_background(name: str) -> bool:
    """Whether a class is the background, such as `background` or labelme's `_background_`."""
    return name.strip('_ ').lower() == BACKGROUND


def means_ignored(name: str) -> bool:
    """Whether a class is named for pixels that nobody labelled, such as `void`."""
    return ''.join(filter(str.isalpha, name.lower())) in _IGNORED_NAMES


def check_classes(classes: Any) -> None:
    """Checks that `classes` are 2 to 255 different names; with one class the loss would be 0."""
    check_names(classes, 'classes')
    if len(classes) < 2:
        raise UserError('classes', 'at least two class names are needed, background included')
    if len(classes) > 255:
        key = f'classes=({", ".join(classes[:4])}, ...)'
        expected = 'at most 255: MMSeg reads masks in 8 bits, and 255 is ignored'
        raise UserError(key, f'{len(classes)} names', expected)


def check_names(names: Any, key: str) -> None:
    """Checks that names are a list without repetition; `key` is the setting or option."""
    is_list = isinstance(names, Sequence) and not isinstance(names, str)
    # no control characters, which no XML may hold
    if not is_list or not names or not all(printable(name) == name for name in names):
        expected = 'the class names in the order of their ids, each in one line of text'
        raise UserError(f'{key}={names!r}', '', expected)
    if len(set(names)) < len(names):
        raise UserError(f'{key}={tuple(names)}', '', 'every name once')


def check_mask(
    mask: object,
    ids: np.ndarray,
    num_classes: int,
    *,
    image: object = None,
    size: tuple[int, int] | None = None,
    label_map: Mapping[int, int] | None = None,
    reduce_zero_label: bool = False,
) -> dict[int, int]:
    """Checks size and ids `(H, W)` of a mask; returns the label of each id, as MMSeg maps them.

    `size` is width and height of its `image`; `None` if unknown. Ids that are not in `label_map`
    stay as they are; with `reduce_zero_label` 0 is ignored and all other ids move down by 1. The
    labels, 0 to `num_classes` - 1 or ignored, are in the order of the ids.
    """
    if size is not None:
        check_size(mask, ids, image, size)
    if ids.dtype in (np.uint8, np.bool_):  # a tenth of the time of `unique`
        present = np.flatnonzero(np.bincount(ids.reshape(-1), minlength=256))
    else:
        present = np.unique(ids)
    label_of = {}
    for raw in present.tolist():
        label = raw
        if reduce_zero_label and raw <= 255:  # as MMSeg does: first this, then the map
            label = 255 if raw in (0, 255) else raw - 1
        label_of[raw] = (label_map or {}).get(label, label)
    known = {*range(num_classes), IGNORE_INDEX}
    if unknown := [str(raw) for raw, label in label_of.items() if label not in known]:
        more = ' and more' if len(unknown) > 5 else ''
        mapped = ', after label_map or reduce_zero_label' if label_map or reduce_zero_label else ''
        problem = f'label id {", ".join(unknown[:5])}{more} outside the classes'
        expected = f'0 to {num_classes - 1}, or {IGNORE_INDEX} where ignored{mapped}'
        raise UserError(str(mask), problem, expected)
    return label_of


def check_size(mask: object, ids: np.ndarray, image: object, size: tuple[int, int]) -> None:
    """Checks that a mask has its image's size; arguments are as in `check_mask`."""
    if ids.shape != size[::-1]:
        expected = f'{size[0]}×{size[1]}, the size of its image {image}'
        raise UserError(str(mask), f'{ids.shape[1]}×{ids.shape[0]} pixels', expected)


def judge_labels(
    num_masks: Mapping[frozenset[int], int],
    classes: Sequence[str],
    name: str,
    is_mapped: bool = False,
    dirs: tuple[str | Path, str | Path] = ('DATA/images', 'DATA/masks'),
) -> Iterator[str]:
    """Judges a labelled set, called `name`, as a whole; yields warnings, a line each.

    `num_masks` is by the set of their labels, after MMSeg's mappings; `is_mapped` tells
    whether the files hold other ids, and `dirs` are the folders of images and masks.

    Raises:
        UserError: If no pixel is labelled, or the masks of two classes hold only 0 and 255.
    """
    if not (total := sum(num_masks.values())):
        return
    num_ignored = sum(count for labels, count in num_masks.items() if labels <= {IGNORE_INDEX})
    if num_ignored == total:
        problem = f'all {total} masks hold only {IGNORE_INDEX} (ignored)'
        raise UserError(name, problem, f'class ids from 0 to {len(classes) - 1}')
    present = frozenset().union(*num_masks)
    if len(classes) == 2 and present == {0, IGNORE_INDEX} and not is_mapped:
        masks = Path(dirs[1])
        data = masks.parent if masks.name == 'masks' else masks
        options = ('--images', dirs[0], '--out', f'{data}_ids')
        colors = (f'{classes[0]}=0', f'{classes[1]}=255')
        command = command_line('import_masks', masks, *options, '--colors', *colors)
        problem = f'the {total} masks hold 0 and 255 alone, and 255 is ignored'
        raise UserError(f'{name}: {problem}. If 255 is {classes[1]}: {command}')
    if num_ignored:
        ignored = f'{num_ignored} of {total} masks are {IGNORE_INDEX} (ignored) alone'
        yield f'{name}: {ignored}; expected a labelled pixel in each'
    if absent := [str(name) for index, name in enumerate(classes) if index not in present]:
        names = f'{", ".join(absent[:5])}{" and more" if len(absent) > 5 else ""}'
        number = f'{len(absent)} of {len(classes)} classes'
        yield f'{name}: {names} ({number}) in none of the {total} masks; expected each in one'
