"""Background and ignored pixels: names and ids."""

from collections.abc import Sequence
from typing import Any

from mmseg_cct.errors import UserError, printable

from .text import is_unicode

BACKGROUND = 'background'

# Ignored pixels, in every mask and at every step after the masks are loaded.
IGNORE_INDEX = 255

_IGNORED_NAMES = (
    *('void', 'ignore', 'ignored', 'unlabelled', 'unlabeled', 'unannotated', 'nolabel'),
    *('dontcare', 'donotcare'),
)


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
        raise UserError(
            f'classes={tuple(classes)}', '', 'two names or more, that of the background too'
        )
    if len(classes) > 255:
        shown = ', '.join(classes[:4])
        raise UserError(
            f'classes=({shown}, ...)',
            f'{len(classes)} names',
            'at most 255: MMSeg reads masks in 8 bits, and 255 is ignored',
        )


def check_names(names: Any, key: str) -> None:
    """Checks that names are a list without repetition; `key` is the setting or option."""
    is_list = isinstance(names, Sequence) and not isinstance(names, str)
    if not is_list or not names or not all(isinstance(name, str) for name in names):
        raise UserError(f'{key}={names!r}', '', 'the class names in the order of their ids')
    for name in names:
        if not is_unicode(name):  # OpenCV would end the process
            raise UserError(key, f'{name!a} is not text', 'names in UTF-8')
        if printable(name) != name:  # XML cannot hold it
            raise UserError(key, f'{name!a} has a control character', 'names in one line of text')
    if len(set(names)) < len(names):
        raise UserError(f'{key}={tuple(names)}', '', 'every name once')
