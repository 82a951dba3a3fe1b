"""Writers of the formats that annotation tools read, one module each.

Each module has `write(export)`, which writes the annotations of an `own_files.Export`. Its
`TRACING` says how its tool wants regions outlined.
"""

from importlib import import_module
from types import ModuleType

FORMATS = ('coco', 'cvat', 'labelme', 'label-studio')


def writer_of(name: str) -> ModuleType:
    """Returns the module that writes a format."""
    return import_module(f'.{name.replace("-", "_")}', __name__)
