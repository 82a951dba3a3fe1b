import json

import numpy as np
import pytest
from exports import save, write
from formats import BOX, SIZE, drawn, of_coco
from PIL import Image

from mmseg_cct.annotations.readers import coco, require_reader
from mmseg_cct.annotations.shapes import LeftOut
from mmseg_cct.annotations.source import Source
from mmseg_cct.errors import UserError

RLE = dict(size=[10, 12], counts=[20, 100])


def edited(source, **changes):
    """The same file with other values of its first entries."""
    content = json.loads(source.path.read_text())
    for key, values in changes.items():
        content[key][0].update(values)
    write(source.path, content)
    return Source(source.path)


def test_parts_of_an_object_add_up_and_empty_ones_are_none(tmp_path):
    overlapping = [BOX, [4, 2, 10, 2, 10, 6, 4, 6]]
    assert (drawn(coco.read(of_coco(tmp_path, dict(segmentation=overlapping)))) == 0).sum() == 32
    for parts in ([BOX, None], [BOX, []], BOX, list(map(str, BOX))):
        (image,) = coco.read(of_coco(tmp_path, dict(segmentation=parts))).images
        (shape,) = image.parts
        assert np.array_equal(shape.polygons[0].reshape(-1), BOX)


def test_a_crowd_is_known_but_not_where_a_tool_means_none(tmp_path):
    source = of_coco(tmp_path, dict(segmentation=RLE, iscrowd=1))
    for captured in ('2026-01-01', 0):  # the latter by CVAT and Datumaro
        (image,) = coco.read(edited(source, images=dict(date_captured=captured))).images
        assert [part.is_crowd for part in image.parts] == [captured != 0]


def test_what_has_no_region_lies_where_its_box_or_keypoints_do(tmp_path):
    turned = dict(bbox=[2, 2, 6, 4], attributes=dict(rotation=90))
    keypoints = dict(keypoints=[3, 4, 2, 7, 8, 1])
    source = of_coco(tmp_path, dict(bbox=[2, 2, 6, 4]), turned, keypoints, dict(caption='a'))
    (image,) = coco.read(source).images
    box, turned, keypoints = image.parts
    assert all(isinstance(part, LeftOut) for part in (box, turned, keypoints))
    assert box.extent.tolist() == [[2, 2], [8, 6]]
    assert np.allclose(turned.extent, [[3, 1], [7, 7]])
    assert keypoints.extent.tolist() == [[3, 4], [7, 8]]


def test_ids_may_be_text_and_the_size_that_of_an_rle(tmp_path):
    source = edited(of_coco(tmp_path, dict(segmentation=RLE)), annotations=dict(image_id='1'))
    for sides in (dict(width='12', height=10), dict(width=None, height=None), dict(width=0)):
        source = edited(source, images=sides)
        assert (drawn(coco.read(source))[:, 2:] == 0).all()
    (image,) = coco.read(edited(source, annotations=dict(segmentation=[BOX]))).images
    assert image.size is None  # it is the photo's


@pytest.mark.parametrize('key', ['images', 'categories'])
def test_an_id_stands_for_one_thing(tmp_path, key):
    source = of_coco(tmp_path)
    content = json.loads(source.path.read_text())
    content[key].append(dict(content[key][0]))
    write(source.path, content)
    assert (drawn(coco.read(Source(source.path))) == 0).sum() == 24  # the same twice
    content[key][-1].update(dict(file_name='2.jpg') if key == 'images' else dict(name='bus'))
    write(source.path, content)
    with pytest.raises(
        UserError, match=r'(car and bus|1\.jpg and 2\.jpg); expected an id for each'
    ):
        coco.read(Source(source.path))


@pytest.mark.parametrize('name', [None, 7, ['car'], '', 'a\nb'])
def test_the_name_of_a_class_is_text(tmp_path, name):
    with pytest.raises(UserError, match=r'x\.json: class .*: expected a name in one line'):
        coco.read(of_coco(tmp_path, categories=[dict(id=1, name=name)]))


def test_roboflow_has_several_files_and_a_category_that_groups(tmp_path):
    groups = dict(id=0, name='cars-x2', supercategory='none')
    categories = [groups, dict(id=1, name='car', supercategory='cars-x2')]
    for folder in ('train', 'valid'):
        of_coco(tmp_path / folder, categories=categories, file='_annotations.coco.json')
        save(tmp_path / folder / '1.jpg', b'')
    source = Source(tmp_path)
    assert require_reader(source) is coco
    annotations = coco.read(source)
    assert list(annotations.classes) == ['car']
    assert [image.name for image in annotations.images] == ['train/1.jpg', 'valid/1.jpg']
    # others need no supercategory
    categories = [dict(id=2, name='vehicle'), dict(id=1, name='car', supercategory='vehicle')]
    assert list(coco.read(of_coco(tmp_path, categories=categories)).classes) == ['car']


def test_two_entries_that_annotate_one_image_are_named(tmp_path):
    for file in ('instances.json', 'stuff.json'):
        of_coco(tmp_path, file=file)
    with pytest.raises(UserError) as raised:
        coco.read(Source(tmp_path))
    found = 'instances.json (image 1) and stuff.json (image 1) both annotate 1.jpg'
    assert raised.value.problems[0].found == found
    source = of_coco(tmp_path / 'x', {}, dict(image_id=2))  # by two annotators
    content = json.loads(source.path.read_text())
    content['images'].append(dict(content['images'][0], id=2))
    write(source.path, content)
    with pytest.raises(UserError) as raised:
        coco.read(Source(source.path))
    assert '(image 1) and x.json (image 2) both' in raised.value.problems[0].found


def test_panoptic_coco_is_read_with_its_pngs(tmp_path):
    ids = np.zeros(SIZE[::-1], int)
    ids[:, :4], ids[:, 8:] = 5 + 256 * 7, 3 + 65536 * 2
    rgb = np.stack([ids % 256, ids // 256 % 256, ids // 65536], -1).astype(np.uint8)
    water, cat = dict(id=5 + 256 * 7, category_id=9), dict(id=3 + 65536 * 2, category_id=2)
    content = dict(
        images=[dict(id=1, file_name='1.jpg', width=SIZE[0], height=SIZE[1])],
        annotations=[dict(image_id=1, file_name='1.png', segments_info=[water, cat])],
        categories=[dict(id=9, name='water'), dict(id=2, name='cat')],
    )
    write(tmp_path / 'panoptic_val.json', content)
    with pytest.raises(UserError, match=r'panoptic: without its 1\.png'):
        drawn(coco.read(Source(tmp_path / 'panoptic_val.json')))
    (tmp_path / 'panoptic_val').mkdir()
    Image.fromarray(rgb).save(tmp_path / 'panoptic_val/1.png')
    save(tmp_path / '1.png', b'a photo')
    source = Source(tmp_path)
    assert require_reader(source) is coco
    mask = drawn(coco.read(source))
    assert (mask[:, :4] == 1).all() and (mask[:, 4:8] == 9).all() and (mask[:, 8:] == 0).all()
    assert source.images() == {'1': '1.png'}
    content['images'][0]['width'] = 5
    write(tmp_path / 'panoptic_val.json', content)
    with pytest.raises(UserError, match='PNG: of 12×10 pixels; expected 5×10'):
        drawn(coco.read(Source(tmp_path)))
