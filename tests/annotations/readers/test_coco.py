import json

import numpy as np
import pytest
from exports import save, write
from formats import BOX, SIZE, drawn, of_coco
from PIL import Image

from mmseg_cct.annotations.readers import coco, require_reader
from mmseg_cct.annotations.source import Source
from mmseg_cct.errors import UserError


def test_coco_parts_of_an_object_add_up_and_crowds_are_ignored(tmp_path):
    overlapping = [BOX, [4, 2, 10, 2, 10, 6, 4, 6]]
    mask = drawn(coco.read(of_coco(tmp_path, dict(segmentation=overlapping))))
    assert (mask == 0).sum() == 8 * 4
    rle = dict(size=[10, 12], counts=[20, 100])
    source = of_coco(tmp_path, dict(segmentation=rle, iscrowd=1))
    mask = drawn(coco.read(source))
    assert (mask[:, :2] == 9).all() and (mask[:, 2:] == 255).all()
    content = json.loads(source.path.read_text())
    content['images'][0]['date_captured'] = 0  # as CVAT writes it, whose masks are all "crowds"
    write(source.path, content)
    assert (drawn(coco.read(Source(source.path)))[:, 2:] == 0).all()


@pytest.mark.parametrize(
    'parts', [[BOX, None], [BOX, []], BOX, list(map(str, BOX)), [BOX, [1, 2, 3]]]
)
def test_a_part_that_is_no_polygon_leaves_the_others(tmp_path, parts):
    (image,) = coco.read(of_coco(tmp_path, dict(segmentation=parts))).images
    assert np.array_equal(image.shapes[0].polygons[0].reshape(-1), BOX)
    faults = [part.fault for part in image.left_out if part.fault]
    assert all('3 numbers; expected x and y of each point' in fault for fault in faults)
    assert bool(image.left_out) == (len(parts) == 2)


def test_coco_of_roboflow_is_several_files_and_a_category_that_groups(tmp_path):
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


def test_panoptic_coco_is_read_with_its_pngs(tmp_path):
    ids = np.zeros(SIZE[::-1], int)
    ids[:, :4], ids[:, 8:] = 5 + 256 * 7, 3 + 65536 * 2
    rgb = np.stack([ids % 256, ids // 256 % 256, ids // 65536], -1).astype(np.uint8)
    water = dict(id=5 + 256 * 7, category_id=9)
    segments = [water, dict(id=3 + 65536 * 2, category_id=2, iscrowd=1)]
    content = dict(
        images=[dict(id=1, file_name='1.jpg', width=SIZE[0], height=SIZE[1])],
        annotations=[dict(image_id=1, file_name='1.png', segments_info=segments)],
        categories=[dict(id=9, name='water'), dict(id=2, name='cat')],
    )
    write(tmp_path / 'panoptic_val.json', content)
    with pytest.raises(UserError, match='a COCO panoptic JSON without its'):
        coco.read(Source(tmp_path / 'panoptic_val.json'))
    (tmp_path / 'panoptic_val').mkdir()
    Image.fromarray(rgb).save(tmp_path / 'panoptic_val/1.png')
    save(tmp_path / '1.png', b'a photo')
    source = Source(tmp_path)
    assert require_reader(source) is coco
    mask = drawn(coco.read(source))
    assert (mask[:, :4] == 1).all() and (mask[:, 4:8] == 9).all() and (mask[:, 8:] == 255).all()
    assert source.images() == {'1': '1.png'}
    content['images'][0]['width'] = 5
    write(tmp_path / 'panoptic_val.json', content)
    (problem,) = coco.read(Source(tmp_path)).images
    assert 'PNG: of 12×10 pixels; expected 5×10, the size of the image' in str(problem)
