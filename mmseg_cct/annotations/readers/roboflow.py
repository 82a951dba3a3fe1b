"""Roboflow's masks of ids: `NAME_mask.png` beside `NAME.jpg`, with `_classes.csv`."""

import csv

from mmseg_cct.errors import UserError

from ..class_table import class_name
from ..shapes import Annotations
from ..source import Source, reading
from . import plain_masks

TITLE = "Roboflow's masks"
_TABLE, _END = '_classes.csv', '_mask.png'


def files(source: Source) -> list[str]:
    """Finds the masks, if there is a table of their ids."""
    return source.ending(_END) if source.ending(_TABLE) else []


def read(source: Source) -> Annotations:
    """Reads the masks; the tables of all folders must name the same ids."""
    classes: dict[int, str] = {}
    for table in source.ending(_TABLE):
        with reading(source.location(table)):
            _, *rows = csv.reader(source.read(table).decode('utf-8-sig').split('\n'))
            for index, name in filter(None, rows):
                if classes.setdefault(int(index), class_name(name)) != class_name(name):
                    raise UserError(f'id {int(index)}', f'{name!r}, and {classes[int(index)]!r}')
    return plain_masks.read_ids(source, dict(sorted(classes.items())), _END)
