"""`classes.json` beside the masks: names, ids and colours of the classes."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from mmseg_cct.datasets.files.labels import BACKGROUND, is_background
from mmseg_cct.datasets.files.palette import class_colours
from mmseg_cct.errors import UserError, printable
from mmseg_cct.utils.files import read_utf8, write_atomic

from .shapes import Colour

TABLE = 'classes.json'
_MOST = 255  # classes in 8 bits, of which id 255 is ignored
_EXPECTED = 'the classes, as tools/import_masks.py writes them'


class ClassTable(NamedTuple):
    """The classes of a folder of masks."""

    colours: Mapping[str, Colour] = {}  # RGB by name, in the order of the ids
    # what pixels that no shape covers became in the first import: `background` or `ignore`
    rest: str | None = None
    renamed: Mapping[str, str | None] = {}  # names in exports; None ignores

    @property
    def ids(self) -> dict[str, int]:
        """Ids by name."""
        return {name: index for index, name in enumerate(self.colours)}


def data_folder(out: Path) -> Path:
    """Returns the folder whose table applies to `out`; a folder `val` shares its parent's table."""
    return out.parent if out.name == 'val' and read_table(out.parent) else out


def class_name(value: object) -> str:
    """Reads the name of a class, in any format: a line of text without outer spaces."""
    if not isinstance(value, str) or not value.strip() or printable(value) != value:
        raise UserError(f'class {value!a}', '', 'a name in one line of text')
    return value.strip()


def read_table(data: str | Path) -> ClassTable | None:
    """Reads the table of a data folder, if it has one; a list of names is enough."""
    path = Path(data, TABLE)
    if not path.is_file():
        return None
    try:
        content = json.loads(read_utf8(path, _EXPECTED))
        listed = [each if isinstance(each, dict) else {'name': each} for each in content['classes']]
        if any(each.get('id', index) != index for index, each in enumerate(listed)):
            raise ValueError('ids out of order')
        named = {class_name(each['name']): each.get('color') for each in listed}
        if len(named) < len(listed):
            raise ValueError('a name is there twice')
        colours = {name: _colour(name, colour) for name, colour in named.items()}
        renamed = {old: new and class_name(new) for old, new in content.get('renamed', {}).items()}
        given = dict(zip(colours, class_colours(list(colours), colours)))
        return ClassTable(given, content.get('rest'), renamed)
    except (ValueError, TypeError, LookupError, AttributeError, RecursionError) as error:
        if isinstance(error, UserError) and str(path) in str(error):
            raise
        raise UserError(str(path), f'damaged ({error})', _EXPECTED) from None


def extended(
    table: ClassTable | None,
    found: Mapping[str, Colour | None],
    rest: str | None,
    renamed: Mapping[str, str | None] | None = None,
) -> ClassTable:
    """Adds classes after those of a table, whose ids never change.

    If `rest` is the background and no class is, a background is added: first, or after the classes
    that already have ids.
    """
    named: dict[str, Colour | None] = dict(table.colours if table else {})
    if rest == BACKGROUND and not any(map(is_background, [*named, *found])):
        named[BACKGROUND] = (0, 0, 0)
    for name, colour in found.items():
        if not (is_background(name) and any(map(is_background, named))):
            named.setdefault(class_name(name), _colour(name, colour))
    if len(named) > _MOST:
        raise UserError('classes', f'{len(named)} names', f'at most {_MOST}')
    rest = (table.rest if table else None) or rest
    colours = dict(zip(named, class_colours(list(named), named)))
    return ClassTable(colours, rest, dict(renamed or {}))


def write_table(data: str | Path, table: ClassTable) -> None:
    """Writes the table of a data folder."""
    classes = [
        dict(id=index, name=name, color=list(colour))
        for index, (name, colour) in enumerate(table.colours.items())
    ]
    # A class in each line, for people who look at it or edit it
    lines = ',\n'.join(f'  {json.dumps(each, ensure_ascii=False)}' for each in classes)
    rest: dict[str, object] = dict(ignored=255, rest=table.rest)
    if table.renamed:
        rest['renamed'] = dict(table.renamed)
    text = json.dumps(rest, ensure_ascii=False, indent=1)
    write_atomic(Path(data, TABLE), f'{{\n "classes": [\n{lines}\n ],{text[1:]}\n'.encode())


def _colour(name: str, value: Sequence[int] | None) -> Colour | None:
    if not value:
        return None
    if len(value) != 3 or not all(isinstance(part, int) and 0 <= part <= 255 for part in value):
        raise UserError(f'class {name!a}', f'colour {value}', 'three numbers from 0 to 255')
    return value[0], value[1], value[2]
