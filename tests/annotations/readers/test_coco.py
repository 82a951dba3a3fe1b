import json

from exports import save, write
from formats import BOX, drawn, of_coco

from mmseg_cct.annotations.readers import (
    coco,
    require_reader,
)
from mmseg_cct.annotations.source import Source


def test_coco_parts_of_an_object_add_up_and_crowds_are_ignored(tmp_path):
    overlapping = [BOX, [4, 2, 10, 2, 10, 6, 4, 6]]
    mask = drawn(coco.read(of_coco(tmp_path / 'x.json', overlapping)))
    assert (mask == 0).sum() == 8 * 4
    rle = dict(size=[10, 12], counts=[20, 100])
    mask = drawn(coco.read(of_coco(tmp_path / 'x.json', rle, iscrowd=1)))
    assert (mask[:, :2] == 9).all() and (mask[:, 2:] == 255).all()
    content = json.loads((tmp_path / 'x.json').read_text())
    content['images'][0]['date_captured'] = 0  # as CVAT writes it, whose masks are all "crowds"
    write(tmp_path / 'x.json', content)
    assert (drawn(coco.read(Source(tmp_path / 'x.json')))[:, 2:] == 0).all()


def test_coco_of_roboflow_is_several_files_and_a_category_that_groups(tmp_path):
    categories = [
        dict(id=0, name='cars-x2', supercategory='none'),
        dict(id=1, name='car', supercategory='cars-x2'),
    ]
    for folder in ('train', 'valid'):
        file = tmp_path / folder / '_annotations.coco.json'
        of_coco(file, categories=categories)
        save(file.parent / '1.jpg', b'')
    source = Source(tmp_path)
    assert require_reader(source) is coco
    annotations = coco.read(source)
    assert list(annotations.classes) == ['car']
    assert [image.name for image in annotations.images] == ['train/1.jpg', 'valid/1.jpg']


def test_coco_categories_need_no_supercategory(tmp_path):
    categories = [dict(id=2, name='vehicle'), dict(id=1, name='car', supercategory='vehicle')]
    assert list(coco.read(of_coco(tmp_path / 'x.json', categories=categories)).classes) == ['car']
