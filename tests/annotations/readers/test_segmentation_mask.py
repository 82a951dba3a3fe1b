import numpy as np
import pytest
from exports import COLOURS, png, save
from formats import SIZE, drawn
from PIL import Image

from mmseg_cct.annotations.readers import require_reader, segmentation_mask
from mmseg_cct.annotations.source import Source
from mmseg_cct.errors import UserError

VOC = [part for index in range(256) for part in segmentation_mask.voc_colour(index)]


def save_ids(folder, value, palette):
    """A mask with ids in a box and at a corner."""
    ids = np.zeros(SIZE[::-1], np.uint8)
    ids[2:6, 2:8], ids[0, 0] = value, 255
    picture = Image.fromarray(ids)
    picture.putpalette(palette)
    (folder / 'SegmentationClass').mkdir(parents=True, exist_ok=True)
    picture.save(folder / 'SegmentationClass/1.png')


def test_a_palette_of_ids_is_told_from_one_of_colours(tmp_path):
    save(tmp_path / 'labelmap.txt', b'background:0,0,0::\ncar:255,0,0::\n')
    for colours, void in ((COLOURS['car'], (224, 224, 192)), ((9, 9, 9), (1, 1, 1))):
        save_ids(tmp_path, 1, [0, 0, 0, *colours, *[0] * 759, *void])
        mask = drawn(segmentation_mask.read(Source(tmp_path)))
        assert (mask == 0).sum() == 24 and mask[0, 0] == 255 and (mask == 9).sum() == 95


def voc(folder, palette=VOC, **files):
    save_ids(folder, 15, palette)
    noise = np.random.default_rng(0).integers(0, 256, (30, 30, 3), np.uint8)
    save(folder / 'JPEGImages/1.jpg', png(noise))
    for name, text in files.items():
        save(folder / f'{name}.txt', text.encode())
    return Source(folder)


def labels(source):
    (image,) = segmentation_mask.read(source).images
    return [shape.label for shape in image.parts]


def test_voc_is_known_by_its_palette_and_layout(tmp_path):
    source = voc(tmp_path / 'voc')
    assert require_reader(source) is segmentation_mask
    assert labels(source) == ['person', None]
    classes = segmentation_mask.read(source).classes
    assert len(classes) == 20 and classes['person'] == (192, 128, 128)
    own = [f'c{n}' for n in range(1, 30)]
    names = '\n'.join(['__ignore__', '_background_', *own])
    assert labels(voc(tmp_path / 'own', class_names=names)) == ['c15', None]
    without_colours = '\n'.join(f'{name}:::' for name in ['background', *own])  # of Datumaro
    assert labels(voc(tmp_path / 'map', labelmap=without_colours)) == ['c15', None]
    with pytest.raises(UserError, match='no known format'):
        require_reader(voc(tmp_path / 'other', [n // 3 for n in range(768)]))


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


def test_two_classes_of_one_colour_are_refused(tmp_path):
    save(tmp_path / 'SegmentationClass/1.png', b'')
    save(tmp_path / 'labelmap.txt', b'background:0,0,0::\nroad:0,0,0::')
    with pytest.raises(UserError, match='classes background and road'):
        segmentation_mask.read(Source(tmp_path))
