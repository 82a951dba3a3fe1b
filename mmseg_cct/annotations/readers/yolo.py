"""YOLO-seg: a text file of polygons for each image, and a file that names the classes."""

import posixpath
from collections.abc import Iterator

import numpy as np
import yaml

from mmseg_cct.errors import UserError

from ..shapes import AnnotatedImage, Annotations, Shape
from ..source import Source, attempt, reading

TITLE = 'YOLO-seg'


def is_mine(source: Source) -> bool:
    """Whether classes are named and text files lie in a folder `labels`."""
    return bool(_table(source) and _labels(source))


def read(source: Source) -> Annotations:
    """Reads all text files below a folder `labels`."""
    name = _table(source)
    with reading(source.place(name), TITLE):
        text = source.text(name)
        if name.endswith('.txt'):
            lines = enumerate(map(str.strip, text.splitlines()))
            names = {index: name for index, name in lines if name}
        else:
            listed = yaml.safe_load(text)['names']
            names = listed if isinstance(listed, dict) else dict(enumerate(listed))
            names = {int(index): str(names[index]) for index in sorted(names)}
    return Annotations(dict.fromkeys(names.values()), _images(source, names))


def _table(source: Source) -> str:
    """Finds the file of the classes: a YAML with `names`, or Label Studio's `classes.txt`."""
    found = source.ending('.yaml', '.yml')
    tables = [name for name in found if 'names:' in source.text(name)]
    return next(iter([*tables, *source.ending('classes.txt')]), '')


def _labels(source: Source) -> list[str]:
    found = source.ending('.txt')
    return [
        name
        for name in found
        if 'labels' in name.split('/')[:-1] and posixpath.basename(name) != 'classes.txt'
    ]


def _images(source: Source, names: dict[int, str]) -> Iterator[AnnotatedImage | UserError]:
    for name in _labels(source):
        yield attempt(source.place(name), TITLE, _image, source, name, names)


def _image(source: Source, name: str, names: dict[int, str]) -> AnnotatedImage:
    shapes, left_out = _shapes(source.text(name), names)
    # The image is at the same path below `images`.
    head, _, tail = f'/{posixpath.splitext(name)[0]}'.rpartition('/labels/')
    image = f'{head}/images/{tail}'.removeprefix('/')
    return AnnotatedImage(image, None, shapes, is_relative=True, left_out=left_out)


def _shapes(text: str, names: dict[int, str]) -> tuple[list[Shape], list[str]]:
    shapes, left_out = [], []
    for number, line in enumerate(text.splitlines(), 1):
        if line.strip():
            with reading(f'line {number}', TITLE):
                number_of_class, *values = line.split()
                index, points = int(number_of_class), np.array(values, float)
                if index not in names:
                    expected = f'one of {", ".join(map(str, names))}'
                    raise UserError(f'class {index}', '', expected)
                if len(points) == 4:
                    left_out.append('box')
                else:
                    shapes.append(Shape(names[index], [points.reshape(-1, 2)]))
    return shapes, left_out
