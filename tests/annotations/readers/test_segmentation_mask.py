import numpy as np
import pytest
from exports import png, save
from formats import SIZE, drawn

from mmseg_cct.annotations.readers import require_reader, segmentation_mask
from mmseg_cct.annotations.source import Source
from mmseg_cct.errors import UserError


def labels(folder, pixels, lines):
    save(folder / 'SegmentationClass/1.png', png(np.array([pixels], np.uint8)))
    save(folder / 'labelmap.txt', lines.encode())
    source = Source(folder)
    assert require_reader(source) is segmentation_mask
    (image,) = segmentation_mask.read(source).images
    return [shape.label for shape in image.parts]


def test_a_table_without_colours_has_those_of_voc(tmp_path):
    """As Datumaro writes it."""
    names = ['background', *(f'c{n}' for n in range(1, 30))]
    pixels = (0, 0, 0), (192, 128, 128), (224, 224, 192)
    lines = '\n'.join(f'{name}:::' for name in names)
    assert labels(tmp_path, pixels, lines) == ['c15', None]
    with pytest.raises(UserError, match='colour 1,2,3'):
        labels(tmp_path, [(1, 2, 3)], lines)


def test_only_the_colour_of_what_is_not_drawn_is_undrawn(tmp_path):
    pixels = np.zeros((*SIZE[::-1], 3), np.uint8)
    pixels[:, 6:] = (0, 215, 255)
    pixels[0] = (224, 224, 192)
    save(tmp_path / 'SegmentationClass/1.png', png(pixels))
    for lines, background, left in (
        ('Background:0,215,255::\nbackground:0,0,0::\nvoid:224,224,192::', 0, 9),
        ('background:0,215,255::', 0, 9),
        ('road:0,0,0::\nbackground:0,215,255::', 1, 0),
    ):
        save(tmp_path / 'labelmap.txt', lines.encode())
        annotations = segmentation_mask.read(Source(tmp_path))
        mask = drawn(annotations)
        assert (mask[1:, 6:] == background).all() and (mask[1:, :6] == left).all(), lines
        assert (mask[0] == 255).all() and 'void' not in annotations.classes
