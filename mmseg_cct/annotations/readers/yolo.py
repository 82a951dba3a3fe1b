"""YOLO-seg: a text file of polygons for each image, and `data.yaml` with the classes."""

import posixpath
from collections.abc import Iterator

import numpy as np
import yaml

from mmseg_cct.errors import Problem, UserError

from ..shapes import AnnotatedImage, Annotations, Shape
from ..source import Source, reading

TITLE = 'YOLO-seg'


def is_mine(source: Source) -> bool:
    """Whether a YAML names classes and text files hold labels."""
    return bool(_table(source) and _labels(source))


def read(source: Source) -> Annotations:
    """Reads all text files below a folder `labels`."""
    name = _table(source)
    with reading(source.place(name), TITLE):
        names = yaml.safe_load(source.text(name))['names']
        if not isinstance(names, dict):
            names = dict(enumerate(names))
        names = {int(index): str(names[index]) for index in sorted(names)}
    return Annotations(dict.fromkeys(names.values()), _images(source, names))


def _table(source: Source) -> str:
    found = source.ending('.yaml', '.yml')
    return next((name for name in found if 'names:' in source.text(name)), '')


def _labels(source: Source) -> list[str]:
    found = source.ending('.txt')
    return [name for name in found if 'labels' in name.split('/')[:-1]]


def _images(source: Source, names: dict[int, str]) -> Iterator[AnnotatedImage | UserError]:
    for name in _labels(source):
        try:
            with reading(source.place(name), TITLE):
                shapes, left_out = _shapes(source.text(name), names)
        except UserError as error:
            yield error
            continue
        # The image stands at the same path below `images`.
        head, _, tail = f'/{posixpath.splitext(name)[0]}'.rpartition('/labels/')
        image = f'{head}/images/{tail}'.removeprefix('/')
        yield AnnotatedImage(image, None, shapes, is_relative=True, left_out=left_out)


def _shapes(text: str, names: dict[int, str]) -> tuple[list[Shape], list[str]]:
    shapes, left_out = [], []
    for number, line in enumerate(text.splitlines(), 1):
        if line.strip():
            with reading(f'line {number}', TITLE):
                index, *values = line.split()
                points = np.array(values, float)
                if int(index) not in names:
                    expected = f'one of {", ".join(map(str, names))}'
                    raise UserError(Problem(f'class {index}', '', expected))
                if len(points) == 4:
                    left_out.append('box')
                else:
                    shapes.append(Shape(names[int(index)], [points.reshape(-1, 2)]))
    return shapes, left_out
