"""`classes.json` beside the masks: names, ids and colours of the classes."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from mmseg_cct.datasets.files.labels import BACKGROUND, is_background
from mmseg_cct.datasets.files.palette import class_colors
from mmseg_cct.errors import UserError, printable
from mmseg_cct.utils.files import read_utf8, write_atomic

from .shapes import Color

TABLE = 'classes.json'
_MOST = 255  # classes in 8 bits, of which id 255 is ignored
_EXPECTED = 'the classes, as mmseg-cct import-masks writes them'


class ClassTable(NamedTuple):
    """The classes of a folder of masks."""

    colors: Mapping[str, Color] = {}  # RGB by name, in the order of the ids
    # what pixels that no shape covers became in the first import: `background` or `ignore`
    undrawn: str | None = None
    renamed: Mapping[str, str | None] = {}  # names in exports; None ignores

    @property
    def ids(self) -> dict[str, int]:
        """Ids by name."""
        return {name: index for index, name in enumerate(self.colors)}


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
        entries = [e if isinstance(e, dict) else {'name': e} for e in content['classes']]
        if any(entry.get('id', index) != index for index, entry in enumerate(entries)):
            raise ValueError('ids out of order')
        names = [class_name(entry['name']) for entry in entries]
        if len(set(names)) < len(names):
            raise ValueError('a name is there twice')
        colors = {name: _color(entry.get('color')) for name, entry in zip(names, entries)}
        renamed = {old: new and class_name(new) for old, new in content.get('renamed', {}).items()}
        return ClassTable(_all_colors(colors), content.get('rest'), renamed)
    except (ValueError, TypeError, LookupError, AttributeError, RecursionError) as error:
        if isinstance(error, UserError) and str(path) in str(error):
            raise
        raise UserError(str(path), f'damaged ({error})', _EXPECTED) from None


def extended(
    table: ClassTable | None,
    new_classes: Mapping[str, Color | None],
    undrawn: str | None,
    renamed: Mapping[str, str | None] | None = None,
) -> ClassTable:
    """Adds classes after those of a table, whose ids never change.

    If `undrawn` is the background and no class is, a background is added: first, or after the
    classes that already have ids.
    """
    colors: dict[str, Color | None] = dict(table.colors if table else {})
    if undrawn == BACKGROUND and not any(map(is_background, [*colors, *new_classes])):
        colors[BACKGROUND] = (0, 0, 0)
    for name, color in new_classes.items():
        if not (is_background(name) and any(map(is_background, colors))):
            colors.setdefault(class_name(name), color)
    if len(colors) > _MOST:
        raise UserError('classes', f'{len(colors)} names', f'at most {_MOST}')
    undrawn = (table.undrawn if table else None) or undrawn
    return ClassTable(_all_colors(colors), undrawn, dict(renamed or {}))


def write_table(data: str | Path, table: ClassTable) -> None:
    """Writes the table of a data folder."""
    colors = enumerate(table.colors.items())
    classes = [dict(id=index, name=name, color=list(color)) for index, (name, color) in colors]
    # A class in each line, for people who look at it or edit it
    lines = ',\n'.join(f'  {json.dumps(entry, ensure_ascii=False)}' for entry in classes)
    settings: dict[str, object] = {'ignored': 255, 'rest': table.undrawn}
    if table.renamed:
        settings['renamed'] = dict(table.renamed)
    text = json.dumps(settings, ensure_ascii=False, indent=1)
    write_atomic(Path(data, TABLE), f'{{\n "classes": [\n{lines}\n ],{text[1:]}\n'.encode())


def _all_colors(colors: Mapping[str, Color | None]) -> dict[str, Color]:
    return dict(zip(colors, class_colors(list(colors), colors)))


def _color(value: Sequence[int] | None) -> Color | None:
    if not value:
        return None
    red, green, blue = bytes(value)  # which are from 0 to 255
    return red, green, blue
