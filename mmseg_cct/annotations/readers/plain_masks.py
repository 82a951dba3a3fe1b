"""Folders of masks: pictures of colours, of grey values, or of one class on the rest."""

import posixpath
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import NamedTuple, NoReturn

import numpy as np
from PIL import Image
from scipy.spatial import KDTree
from scipy.spatial.distance import pdist

from mmseg_cct.datasets.files.image_files import IMAGE_SUFFIXES
from mmseg_cct.errors import UserError

from ..pictures import code_of, colour_of, decode, flat_values, pack, rgb, whole_numbers
from ..shapes import AnnotatedImage, Annotations, Colour, Shape
from ..source import Source, read_each, reading
from .segmentation_mask import VOID, require_distinct

TITLE = 'masks of colours'
_LOOKED_AT = 50  # masks whose colours are shown
_SHOWN = 12  # colours
_LOSSY = 12  # distance in RGB by which a lossy format may move a colour
_FARTHEST = 128  # distance in RGB of a blended pixel to its colour
_MOST_BLENDED = 0.05  # of a mask's pixels
_LOSSY_FORMATS = 'JPEG', 'MPO', 'WEBP'
_SPREAD = 0.1  # of the variance of a mask of one class, within its two clusters of values
_THIRD = 0.05  # of the upper cluster's pixels, for a value that fills areas to be one of its own

_Read = tuple[list[Shape], dict[tuple[str, str], int]]  # and notes


def is_mine(source: Source) -> bool:
    """Whether there are only pictures, with few colours."""
    names = _masks(source)
    return bool(names) and len(names) == len(source.names) and bool(_count(source, names[:1]))


def ask_for_names(source: Source) -> NoReturn:
    """Raises an error that lists the colours found and shows how to name them."""
    found = _count(source, _masks(source)[:_LOOKED_AT])
    shares = {_shown(code): count / found.total() for code, count in found.most_common(_SHOWN)}
    listed = ', '.join(f'{colour} ({share:.1%})' for colour, share in shares.items())
    options = ' '.join(f'NAME={colour}' for colour in shares)
    raise UserError(
        str(source.path),
        f'masks of the colours {listed}{", ..." if len(found) > _SHOWN else ""}',
        f'their names, --colors {options}, or --binary NAME for all but 0',
    )


def _shown(code: int) -> str:
    """Writes a colour as `--colors` takes it: greys as one number."""
    parts = colour_of(code).split(',')
    return parts[0] if len(set(parts)) == 1 else ','.join(parts)


def _masks(source: Source) -> list[str]:
    return source.ending(*IMAGE_SUFFIXES)


def _count(source: Source, names: list[str]) -> Counter[int]:
    """Counts the pixels of each colour; returns none if there are too many colours for masks."""
    counts: Counter[int] = Counter()
    for name in names:
        with reading(source.place(name), TITLE):
            codes, numbers = np.unique(pack(rgb(decode(source.read(name)))), return_counts=True)
        if len(codes) > 256:
            return Counter()
        counts.update(dict(zip(codes.tolist(), numbers.tolist())))
    return counts


class MaskFolder(NamedTuple):
    """The masks of an export whose names have a suffix.

    `values` are grey values that are classes of their own.
    """

    source: Source
    suffix: str
    values: Collection[str] = ()

    def read_colours(self, colours: Mapping[str, Colour], is_strict: bool) -> Annotations:
        """Reads masks by a table of colours.

        Pixels between the colours get the nearest; other colours are an error if `is_strict`, else
        not drawn.
        """
        require_distinct(colours)
        return self._read(colours, partial(_coloured, colours=colours, is_strict=is_strict))

    def read_binary(self, name: str) -> Annotations:
        """Reads the brighter of two clusters of values, or what is opaque, as the class `name`."""
        levels = []
        for file in self._files()[:_LOOKED_AT]:
            with suppress(UserError):  # reported when it is read
                picture, _ = self._picture(file)
                levels.append(_levels(_brightness(picture), picture.format in _LOSSY_FORMATS)[1])
        usual = float(np.median([level for level in levels if level] or [0]))
        return self._read({name: None}, partial(_binary, name=name, usual=usual))

    def _read(
        self, classes: Mapping[str, Colour | None], read: Callable[[Image.Image], _Read]
    ) -> Annotations:
        images = read_each(self.source, self._files(), TITLE, self._image, read)
        return Annotations({**classes, **dict.fromkeys(self.values)}, images)

    def _files(self) -> list[str]:
        """Finds the masks; they are no images."""
        end = self.suffix.lower()
        named = [name for name in _masks(self.source) if name.lower().endswith(end)]
        if not named:
            raise UserError(str(self.source.path), 'no mask of that name', f'NAME{self.suffix}')
        self.source.masks |= set(named)
        return named

    def _image(self, _: Source, name: str, read: Callable[[Image.Image], _Read]) -> AnnotatedImage:
        image = name[: -len(self.suffix)] if self.suffix else posixpath.splitext(name)[0]
        picture, own = self._picture(name)
        shapes, notes = read(picture)
        if 'labelIds' in name:  # of Cityscapes
            hint = 'as named; labelTrainIds has 0 to 18 and 255'
            notes['pixels of labelIds', hint] = picture.width * picture.height
        return AnnotatedImage(image, picture.size, [*shapes, *own], notes=notes)

    def _picture(self, name: str) -> tuple[Image.Image, list[Shape]]:
        """Decodes a mask, and takes `values` out of it; others must be whole."""
        picture = decode(self.source.read(name))
        if picture.mode == 'P' or len(picture.getbands()) > 1:
            return picture, []
        pixels = np.asarray(picture)
        own = [Shape(value, mask=pixels == int(value), z=1) for value in self.values]
        rest = whole_numbers(picture, list(map(int, self.values)))
        own = [shape for shape in own if shape.has_area]
        return Image.fromarray(rest) if own else picture, own


def _coloured(picture: Image.Image, colours: Mapping[str, Colour], is_strict: bool) -> _Read:
    codes = pack(rgb(picture))
    notes: dict[tuple[str, str], int] = {}
    table: dict[int, str | None] = {code_of(VOID): None}
    table |= {code_of(colour): name for name, colour in colours.items()}
    if set(np.unique(codes).tolist()) - table.keys():
        codes, notes, others = _snapped(codes, [code_of(colour) for colour in colours.values()])
        if others and is_strict:
            shown = ' and '.join(map(_shown, others[:5]))
            more = f' and {len(others) - 5} more' if len(others) > 5 else ''
            found = f'colours {shown}{more}'
            raise UserError(found, 'without a name', '--colors with each, or --rest')
    present = [code for code in np.unique(codes).tolist() if code in table]
    return [Shape(table[code], mask=codes == code) for code in present], notes


def _snapped(
    codes: np.ndarray, named: Sequence[int]
) -> tuple[np.ndarray, dict[tuple[str, str], int], list[int]]:
    """Gives blended pixels the nearest colour; returns codes, what was changed, and other colours.

    Colours that fill areas are colours of their own. The rest are what a lossy format or a resized
    edge makes; those that are too far from any colour are ignored.
    """
    present, index = np.unique(codes, return_inverse=True)
    pixels, void = np.bincount(index.reshape(-1)), code_of(VOID)
    spacing = pdist(_channels(named))
    farthest = min([_FARTHEST, *spacing[spacing > 0] / 2])
    distance, _ = KDTree(_channels(named)).query(_channels(present))
    is_near = distance <= min(_LOSSY, farthest)
    flat = flat_values(codes)
    others = [code for code in present[~is_near].tolist() if code in flat]
    palette = np.array([*named, *others])
    distance, at = KDTree(_channels(palette)).query(_channels(present))
    nearest = palette[at]
    is_blend = ~is_near & ~np.isin(present, [*others, void])
    is_lost = is_blend & (distance > farthest)
    nearest[is_lost | (present == void)] = void
    if (share := pixels[is_blend].sum() / codes.size) > _MOST_BLENDED:
        found = f'{share:.1%} of the pixels blend colours'
        expected = 'a mask without loss: a PNG, resized by the nearest pixel'
        raise UserError('colours', found, expected)
    kinds = {
        ('pixels of blended colours', 'the nearest colour'): (present != nearest) & ~is_lost,
        ('pixels of colours between all others', 'ignored (255)'): is_lost,
        ('pixels of colours without a name', 'as undrawn'): np.isin(present, others),
    }
    notes = {kind: int(pixels[of].sum()) for kind, of in kinds.items()}
    return nearest[index].reshape(codes.shape), notes, others


def _channels(codes: Sequence[int] | np.ndarray) -> np.ndarray:
    return (np.asarray(codes, np.int64)[:, None] >> np.array([16, 8, 0])) & 255


def _binary(picture: Image.Image, name: str, usual: float) -> _Read:
    """Returns the class where the picture is in the upper of two clusters of values."""
    pixels = _brightness(picture)
    threshold, level = _levels(pixels, picture.format in _LOSSY_FORMATS)
    if level and picture.format in _LOSSY_FORMATS and level < _LOSSY:
        raise UserError(f'values up to {level:.0f}', picture.format, 'a PNG')
    if level and not usual / 4 <= level <= usual * 4:
        found = f'values up to {level:.0f}, in other masks {usual:.0f}'
        raise UserError('mask', found, 'masks of one kind, or imports apart')
    return [Shape(name, mask=pixels > threshold)], {}


def _brightness(picture: Image.Image) -> np.ndarray:
    """Returns the values of a mask `(H, W)`: its opacity if that differs, else the highest."""
    if picture.mode == 'P':
        picture = picture.convert('RGBA' if 'transparency' in picture.info else 'RGB')
    pixels = np.asarray(picture)
    if pixels.ndim == 2:
        return pixels.astype(float)
    has_alpha = pixels.shape[2] in (2, 4)
    if has_alpha and (pixels[..., -1] != pixels.flat[pixels.shape[2] - 1]).any():
        return pixels[..., -1].astype(float)
    values = pixels[..., : pixels.shape[2] - has_alpha]
    if len(np.unique(values.reshape(-1, values.shape[2]), axis=0)) > 256:
        raise UserError('picture', 'more than 256 colours', 'a mask, see --mask-suffix')
    return values.max(-1).astype(float)


def _levels(pixels: np.ndarray, is_lossy: bool) -> tuple[float, float]:
    """Finds the threshold between two clusters of values, by Otsu, and the level of the upper one.

    A mask of one value is all 0 or all above the threshold. Without loss, another value that fills
    areas is an id of its own.
    """
    values, counts = np.unique(pixels, return_counts=True)
    if len(values) == 1:
        return 0.0, float(values[0])
    weights = counts / counts.sum()
    below, first = np.cumsum(weights)[:-1], np.cumsum(weights * values)[:-1]
    mean = float(weights @ values)
    between = (mean * below - first) ** 2 / (below * (1 - below))
    cut = int(between.argmax())
    low, high = first[cut] / below[cut], (mean - first[cut]) / (1 - below[cut])
    flat = flat_values(pixels)
    upper = int(counts[cut + 1 :].sum())
    clusters = values[: cut + 1], values[cut + 1 :]
    main = [max(cluster, key=lambda value: flat.get(value, 0)) for cluster in clusters]
    slack = _LOSSY if is_lossy else 0
    is_third = any(
        number > _THIRD * upper and min(abs(value - level) for level in main) > slack
        for value, number in flat.items()
    )
    spread = 1 - between[cut] / float(weights @ (values - mean) ** 2)
    if is_third or spread > _SPREAD or low > high / 4:
        shown = ', '.join(f'{value:g}' for value in values[np.argsort(-counts)][:5])
        found = f'values {shown}{", ..." if len(values) > 5 else ""}, not two clusters from 0'
        raise UserError('mask', found, '0 and another value, or --colors NAME=VALUE ...')
    return float(low + high) / 2, float(high)
