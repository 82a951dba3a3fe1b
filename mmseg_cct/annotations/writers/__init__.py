"""Writers of the formats that annotation tools read, one module each.

Each has `write(export)`, which writes the annotations of an `output.Export`.
"""

FORMATS = ('coco', 'cvat', 'labelme', 'label-studio')
