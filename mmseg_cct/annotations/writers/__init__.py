"""Writers of the formats that annotation tools read, each a module.

A module has `write(files, classes, images, folder)`: it writes the images, whose files are below
`folder`, in one pass. Its `TRACING` says how its tool wants regions outlined.
"""

from importlib import import_module
from types import ModuleType

FORMATS = ('coco', 'cvat', 'labelme', 'label-studio', 'yolo')


def writer_of(name: str) -> ModuleType:
    """Gives the module that writes a format."""
    return import_module(f'.{name.replace("-", "_")}', __name__)
