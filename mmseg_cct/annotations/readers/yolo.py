"""YOLO-seg: a text file of polygons for each image, and a file that names the classes."""

import posixpath

import numpy as np
import yaml

from mmseg_cct.errors import UserError

from ..shapes import AnnotatedImage, Annotations, LeftOut, Shape
from ..source import Source, read_each, read_part, reading
from .geometry import extent_of, polygon, region

TITLE = 'YOLO-seg'
# In `data.yaml` of files that this project wrote: later lines lie on top.
ORDERED = 'later_on_top'


def is_mine(source: Source) -> bool:
    """Whether classes are named and text files lie in a folder `labels`."""
    return bool(_table(source) and _labels(source))


def read(source: Source) -> Annotations:
    """Reads all text files below a folder `labels`."""
    name = _table(source)
    with reading(source.place(name), TITLE):
        text, is_ordered = source.text(name), False
        if name.endswith('.txt'):
            lines = enumerate(map(str.strip, text.splitlines()))
            names = {index: name for index, name in lines if name}
        else:
            content = yaml.safe_load(text)
            listed, is_ordered = content['names'], content.get(ORDERED) is True
            names = listed if isinstance(listed, dict) else dict(enumerate(listed))
            # the text of nested lists may grow without limit
            if nested := [each for each in names.values() if isinstance(each, (list, dict))]:
                raise TypeError(f'a class is a {type(nested[0]).__name__}')
            names = {int(index): str(names[index]) for index in sorted(names)}
    images = read_each(source, _labels(source), TITLE, _image, names, 0 if is_ordered else None)
    return Annotations(dict.fromkeys(names.values()), images)


def _table(source: Source) -> str:
    """Finds the file of the classes: a YAML with `names`, or Label Studio's `classes.txt`."""
    found = source.ending('.yaml', '.yml')
    tables = [name for name in found if 'names:' in source.text(name)]
    return next(iter([*tables, *source.ending('classes.txt')]), '')


def _labels(source: Source) -> list[str]:
    folders = ((name, name.split('/')) for name in source.ending('.txt'))
    return [name for name, (*at, file) in folders if 'labels' in at and file != 'classes.txt']


def _image(source: Source, name: str, names: dict[int, str], z: int | None) -> AnnotatedImage:
    lines = enumerate(source.text(name).splitlines(), 1)
    parts = [
        _part(f'line {number}', line.split(), names, z) for number, line in lines if line.strip()
    ]
    # The image is at the same path below `images`.
    head, _, tail = f'/{posixpath.splitext(name)[0]}'.rpartition('/labels/')
    image = f'{head}/images/{tail}'.removeprefix('/')
    return AnnotatedImage(image, None, parts, is_relative=True)


def _part(place: str, words: list[str], names: dict[int, str], z: int | None) -> Shape | LeftOut:
    with reading(place, TITLE):
        index = int(words[0])
        if index not in names:
            expected = f'one of {", ".join(map(str, names))}'
            raise UserError(f'class {index}', '', expected)
        if len(words) in (5, 6):  # the sixth is a prediction's confidence
            centre, sides = np.array(words[1:5], float).reshape(2, 2)
            extent = extent_of([centre - sides / 2, centre + sides / 2])
            return LeftOut('box', extent, names[index], z=z)
    otherwise = LeftOut('polygon', extent_of(words[1:]), names[index])
    return read_part(place, TITLE, otherwise, lambda: region(names[index], polygon(words[1:]), z=z))
