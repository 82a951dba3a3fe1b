"""What is particular to a format, beside the scene that all of them export."""

import base64
import json
import re
import zlib

import pytest
from exports import save
from formats import of_coco, of_cvat, of_label_studio, of_labelme, of_supervisely, only_problem

from mmseg_cct.annotations.readers import require_reader
from mmseg_cct.annotations.source import Source
from mmseg_cct.errors import UserError


def nested(depth):
    return '[' * depth + ']' * depth


@pytest.mark.parametrize(
    ('make', 'message'),
    [
        (lambda p: of_coco(p / 'x.json', ['car']), r'annotation 5: damaged \(ValueError'),
        (
            lambda p: of_coco(p / 'x.json', dict(size=[5, 6], counts=[20, 10])),
            r'annotation 5: RLE: of 6×5 pixels; expected 12×10, the size of the image',
        ),
        (
            lambda p: of_coco(p / 'x.json', categories=[dict(id=2, name='car')]),
            r'annotation 5: category_id=1: expected one of \[2\]',
        ),
        (
            lambda p: of_cvat(p / 'x.xml', '<box label="car" xtl="x"/>'),
            r'box car: damaged \(ValueE',
        ),
        (
            lambda p: of_cvat(p / 'x.xml', '<mask label="car" rle="1"/>'),
            r'mask car: damaged \(KeyE',
        ),
        (
            lambda p: of_labelme(p / '1.json', shape_type='mask', mask='%', points=[[0, 0]]),
            r'shapes\[0\]: (picture: no image|damaged)',
        ),
        (
            lambda p: of_label_studio(
                p / 'x.json', dict(value=dict(x=1, height=1, labels=['car']))
            ),
            r"result\[0\]: damaged \(KeyError: 'y'\)",
        ),
        (
            lambda p: of_supervisely(
                p, geometryType='bitmap', bitmap=dict(data=bomb(), origin=[0, 0])
            ),
            r'objects\[0\]: picture: no image',
        ),
        (
            lambda p: of_supervisely(
                p,
                geometryType='rectangle',
                points=dict(exterior=[[0, 0], [1e8, 1e8]]),
            ),
            'polygon: 100000001×100000001 pixels',
        ),
    ],
)
def test_what_is_damaged_in_an_image_is_told_in_a_line(tmp_path, make, message):
    source = make(tmp_path)
    problem = only_problem(require_reader(source).read(source))
    assert re.search(message, problem) and '\n' not in problem


def bomb():
    return base64.b64encode(zlib.compress(bytes(2**27), 1)).decode()


@pytest.mark.parametrize(
    ('name', 'text', 'message'),
    [
        ('x.json', '{"images": [', r'not JSON \(.*; expected an export of a tool'),
        ('x.json', nested(200_000), 'not JSON'),
        ('x.json', '[]', 'no known format; expected COCO, CV'),
        (
            'x.json',
            json.dumps(dict(images=[], annotations=[{}], categories=[])),
            r'damaged \(KeyErr',
        ),
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
