"""Makes masks of class ids from annotations of labelling tools, and the reverse."""

# what `export.export_masks` writes
FORMATS = ('coco', 'cvat', 'labelme', 'label-studio')
