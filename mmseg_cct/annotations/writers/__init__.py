"""Writers of the formats that annotation tools read, one module each.

Each module has `write(files, classes, images, folder)`, which writes the annotations of the images
in one pass; the image files are below `folder`. Its `TRACING` says how its tool wants regions
outlined.
"""

from importlib import import_module
from types import ModuleType

FORMATS = ('coco', 'cvat', 'labelme', 'label-studio', 'yolo')


def writer_of(name: str) -> ModuleType:
    """Returns the module that writes a format."""
    return import_module(f'.{name.replace("-", "_")}', __name__)
