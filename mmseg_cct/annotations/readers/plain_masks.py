"""Folders of masks: pictures of colours or of grey values."""

import posixpath
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import NoReturn

import numpy as np
from PIL import Image

from mmseg_cct.datasets.files.image_files import IMAGE_SUFFIXES
from mmseg_cct.datasets.files.labels import IGNORE_INDEX
from mmseg_cct.errors import UserError

from ..pictures import TRANSPARENT, bitmap, color_code, color_text, open_picture, packed_colors
from ..shapes import AnnotatedImage, Annotations, Color, Note, Shape
from ..source import Source, attempt, reading
from .segmentation_mask import COLOR_TABLE, OF_AN_EXPORT, VOID, require_distinct

TITLE = 'masks of colours'
_LOOKED_AT = 50  # masks whose colours are shown
_SHOWN = 12  # colours
_LABEL_STUDIO = re.compile(r'task-\d+-annotation-\d+-by-')
_NOTHING = Shape(None, mask=np.zeros((1, 1), bool))  # a mask without a class is one all the same
_MOST = 256  # colours of a mask; a photo has more


def files(source: Source) -> list[str]:
    """Finds the masks, if there are only pictures, the first of them with few colours."""
    names = source.ending(*IMAGE_SUFFIXES)
    is_all = names and len(names) == len(source.names)
    return names if is_all and len(_count(source, names[:1])) <= _MOST else []


def _pictures(source: Source, suffix: str = '') -> list[str]:
    """Lists the pictures whose names end in `suffix`, if there are some that name an image."""
    names = [n for n in source.ending(*IMAGE_SUFFIXES) if n.lower().endswith(suffix.lower())]
    if not names:
        raise UserError(str(source.path), 'no mask of that name', f'NAME{suffix}')
    if _LABEL_STUDIO.search(names[0]):
        problem = "Label Studio's export of brushes as PNG, which does not name the images"
        raise UserError(str(source.path), problem, 'its export as JSON, with brushes and polygons')
    return names


def read(source: Source) -> NoReturn:
    """Raises an error that lists the colours found and shows how to name them."""
    if source.path.name in OF_AN_EXPORT and (source.path.parent / COLOR_TABLE).is_file():
        problem = f'a part of an export, without {COLOR_TABLE} beside it, which names the colours'
        raise UserError(str(source.path), problem, f'the whole export: {source.path.parent}')
    _ask_for_names(source, _pictures(source))


def _ask_for_names(source: Source, names: list[str]) -> NoReturn:
    counts = _count(source, names[:_LOOKED_AT])
    shares = {color_text(code): n / counts.total() for code, n in counts.most_common(_SHOWN)}
    listed = ', '.join(f'{color} ({share:.1%})' for color, share in shares.items())
    more = ', ...' if len(counts) > _SHOWN else ''
    named = ' '.join(f'NAME={color}' for color in shares)
    problem = f'masks of the colours {listed}{more}'
    merged = "; if each shows one class: --mask-of NAME='*END'" if len(counts) == 2 else ''
    raise UserError(str(source.path), f'{problem}; name them: --colors {named}{merged}')


def _count(source: Source, names: list[str]) -> Counter[int]:
    """Counts the pixels of each colour."""
    counts = Counter[int]()
    for name in names:
        with reading(source.location(name)):
            codes = packed_colors(open_picture(source.read(name)))
        values, numbers = np.unique(codes[codes != TRANSPARENT], return_counts=True)
        counts.update(dict(zip(values.tolist(), numbers.tolist())))
    return counts


def read_colors(
    source: Source, colors: Mapping[str, Color], suffix: str, is_strict: bool
) -> Annotations:
    """Reads the pictures whose names end in `suffix`, by a table of colours.

    Other colours are an error if `is_strict`, else not drawn.
    """
    require_distinct(colors)
    names = _pictures(source, suffix)
    named = {color_code(color): name for name, color in colors.items()}
    counts = (attempt(source.location(name), _count, source, [name]) for name in names)
    if not any(isinstance(count, UserError) or named.keys() & count for count in counts):
        _ask_for_names(source, names)
    # VOC's border between objects, unless it is named
    labels = {color_code(VOID): None, **named}
    remedy = 'name each in --colors, or pass --rest' if is_strict else ''
    images = _images(source, names, suffix, labels, remedy, _open_mask)
    return Annotations(colors, images, True)


def are_ids(source: Source, colors: Sequence[Color], suffix: str = '') -> bool:
    """Whether masks hold the ids of classes of these colours, and 255 where ignored.

    They are grey, or have these colours as palette. What holds 0 and 255 alone may mean both.
    """
    present = set[int]()
    names = [name for name in files(source) if name.lower().endswith(suffix.lower())]
    for name in names[:_LOOKED_AT]:
        with reading(source.location(name)):
            picture = open_picture(source.read(name))
        ids = np.unique(np.asarray(picture)).tolist()
        if len(picture.getbands()) > 1 or not {*ids} <= {*range(len(colors)), IGNORE_INDEX}:
            return False
        palette = np.reshape(picture.getpalette() or [], (-1, 3)).tolist()
        known = [i for i in ids if i != IGNORE_INDEX]
        if palette and any(palette[i : i + 1] != [list(colors[i])] for i in known):
            return False
        present.update(ids)
    return not present <= {0, IGNORE_INDEX}


def read_ids(source: Source, classes: Mapping[int, str], suffix: str = '') -> Annotations:
    """Reads masks of class ids, 255 where ignored; their names end in `suffix`."""
    labels: dict[int, str | None] = {color_code((IGNORE_INDEX, IGNORE_INDEX, IGNORE_INDEX)): None}
    labels |= {color_code((index, index, index)): name for index, name in classes.items()}
    names, remedy = _pictures(source, suffix), 'expected the ids of the classes'
    images = _images(source, names, suffix, labels, remedy, _open_ids)
    return Annotations(dict.fromkeys(classes.values()), images, True)


def _images(
    source: Source,
    names: list[str],
    suffix: str,
    labels: Mapping[int, str | None],
    remedy: str,
    open_mask: Callable[[Source, str], Image.Image],
) -> Iterator[AnnotatedImage | UserError]:
    """Reads masks by a table of colours; others are not drawn or, with a `remedy`, an error."""
    source.masks |= set(names)

    def make(name: str) -> AnnotatedImage:
        picture = open_mask(source, name)
        image = name[: -len(suffix or posixpath.splitext(name)[1])]
        parts = _parts(picture, labels, remedy)
        return AnnotatedImage(image, picture.size, parts, source.location(name))

    return (attempt(source.location(name), make, name) for name in names)


def read_classes(source: Source, patterns: Mapping[str, str]) -> Annotations:
    """Reads masks of one class each, which is where they are opaque or, all opaque, not black.

    `patterns` are the names of the masks by class, with `*` in the place of the image's name. Later
    classes lie on top.
    """
    files = defaultdict[str, dict[str, str]](dict)  # by image and class
    pictures = _pictures(source)
    for label, pattern in patterns.items():
        start, _, end = pattern.partition('*')
        names = [n for n in pictures if n.startswith(start) and n.endswith(end)]
        if not names:
            raise UserError(f'--mask-of {label}={pattern}', 'no mask of that name', f'{label}=*END')
        for name in names:
            files[name[len(start) : len(name) - len(end)]][label] = name
    source.masks |= {name for masks in files.values() for name in masks.values()}

    def make(image: str, masks: Mapping[str, str]) -> AnnotatedImage:
        pictures = {label: _open_mask(source, name) for label, name in masks.items()}
        size, *rivals = {picture.size for picture in pictures.values()}
        if rivals:
            raise UserError('masks', f'of sizes {size} and {rivals[0]}', 'one size')
        parts = [Shape.of_mask(label, bitmap(picture)) for label, picture in pictures.items()]
        return AnnotatedImage(image, size, [_NOTHING, *parts], source.location(image))

    images = (attempt(source.location(image), make, image, files[image]) for image in files)
    return Annotations(dict.fromkeys(patterns), images)


def _open_mask(source: Source, name: str) -> Image.Image:
    picture = open_picture(source.read(name))
    if picture.format in ('JPEG', 'MPO'):  # its colours blend
        raise UserError('mask', picture.format or '', 'a format without loss, such as PNG')
    return picture


def _open_ids(source: Source, name: str) -> Image.Image:
    """Opens a mask of ids, whatever its palette shows."""
    picture = _open_mask(source, name)
    is_grey = picture.mode not in ('1', 'P')
    return picture if is_grey else Image.fromarray(np.asarray(picture).astype(np.uint8))


def _parts(
    picture: Image.Image, labels: Mapping[int, str | None], remedy: str
) -> Iterator[Shape | Note]:
    codes = packed_colors(picture)
    present = np.unique(codes).tolist()
    unnamed = [code for code in present if code not in labels]
    if unnamed and remedy:
        shown = ['transparent' if c == TRANSPARENT else color_text(c) for c in unnamed[:5]]
        more = f' and {len(unnamed) - 5} more' if len(unnamed) > 5 else ''
        problem = f'colours {" and ".join(shown)}{more} have no name'
        raise UserError(f'{problem}; {remedy}')
    yield _NOTHING
    for code in present:
        if code in labels:
            yield Shape.of_mask(labels[code], codes == code)
    num_pixels = int(np.isin(codes, unnamed).sum())
    yield Note('pixels of colours without a name, as undrawn', num_pixels)
