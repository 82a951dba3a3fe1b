"""What is particular to a format, beside the scene that all of them export."""

import json
import re

import pytest
from exports import save
from formats import BOX, of_coco, of_cvat, of_label_studio, of_labelme

from mmseg_cct.annotations.readers import require_reader
from mmseg_cct.annotations.source import Source
from mmseg_cct.errors import UserError

OTHER_SIZE = dict(segmentation=dict(size=[5, 6], counts=[20, 10]))
OTHER_CLASS = dict(segmentation=[BOX], category_id=3)
NO_PICTURE = dict(shape_type='mask', mask='%', points=[[0, 0]])
_STRAY = dict(id=5, image_id=7, category_id=1)
STRAY = json.dumps(dict(images=[], categories=[], annotations=[_STRAY]))
HALF = dict(value=dict(x=1, height=1, labels=['car']))


@pytest.mark.parametrize(
    ('form', 'part', 'message'),
    [
        (of_coco, dict(segmentation=['car']), r'annotation 5: damaged \(ValueError'),
        (of_coco, OTHER_SIZE, r'annotation 5: RLE: of 6×5 pixels; expected 12×10, the size of the'),
        (of_coco, OTHER_CLASS, r'annotation 5: category_id=3: expected one of \[1, 2\]'),
        (of_cvat, '<box label="car" xtl="x"/>', r'box car: damaged \(ValueE'),
        (of_cvat, '<mask label="car" rle="1"/>', r'mask car: damaged \(KeyE'),
        (of_labelme, NO_PICTURE, r'shapes\[0\]: (picture: no image|damaged)'),
        (of_label_studio, dict(HALF, image_rotation=90), r'rotation=90: expected the image as it'),
        (of_label_studio, HALF, r"result\[0\]: damaged \(KeyError: 'y'\)"),
    ],
)
def test_what_is_damaged_in_an_image_is_told_in_a_line(tmp_path, form, part, message):
    source = form(tmp_path, part)
    (image,) = require_reader(source).read(source).images
    problem = str(image) if isinstance(image, UserError) else image.left_out[0].fault
    assert re.search(message, problem) and '\n' not in problem


@pytest.mark.parametrize(
    ('name', 'text', 'message'),
    [
        ('x.json', '{"images": [', r'not JSON \(.*; expected an export of a tool'),
        ('x.json', '[' * 200_000 + ']' * 200_000, 'not JSON'),
        ('x.json', '[]', 'no known format; expected COCO, CV'),
        ('x.json', '{"images": [], "annotations": [{}], "categories": []}', r'damaged \(KeyErr'),
        ('x.json', STRAY, 'annotation 5: image_id=7: expected the id of an image'),
        ('x.xml', '<annotations><image', 'cannot be read'),
        ('x.xml', '<!DOCTYPE x [<!ENTITY a "b">]><annotations/>', 'XML with a DTD; expected'),
        ('x.xml', '<annotations><track/></annotations>', 'tracks of a video; expected'),
        ('x.zip', 'PK\x05\x06' + '\0' * 10, '(no known format|cannot be read)'),
    ],
)
def test_a_damaged_file_is_told_in_a_line(tmp_path, name, text, message):
    save(tmp_path / name, text.encode())
    with pytest.raises(UserError, match=message) as raised:
        source = Source(tmp_path / name)
        list(require_reader(source).read(source).images)
    assert '\n' not in str(raised.value) and name in str(raised.value)
