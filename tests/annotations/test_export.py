"""What predict writes for a tool, import reads: pixel by pixel without simplification."""

import json
from contextlib import contextmanager
from xml.etree import ElementTree

import numpy as np
import pytest
from drawing import CLASSES, drawn
from PIL import Image

from mmseg_cct.annotations.export import export_masks
from mmseg_cct.annotations.importer import import_masks

FILES = {
    'coco': 'coco.json',
    'cvat': 'cvat.xml',
    'labelme': 'labelme',
    'label-studio': 'label_studio.json',
}


@contextmanager
def edited(file):
    content = json.loads(file.read_text('utf-8'))
    yield content
    file.write_text(json.dumps(content))


def accept(file):
    """Turns predictions into annotations, as somebody who submits them in Label Studio does."""
    with edited(file) as tasks:
        for task in tasks:
            task['annotations'] = task.pop('predictions')


@pytest.mark.parametrize('form', sorted(FILES))
@pytest.mark.parametrize('rest', ['background', 'ignore'])
def test_in_and_out_are_inverse(form, rest, masks, tmp_path):
    """Where the rest is ignored, the background is drawn and the right side left out."""
    out, data = tmp_path / 'out', tmp_path / 'data'
    exact = dict(tolerance=0, min_area=0, background=rest == 'ignore')
    if rest == 'ignore':
        for path in masks.values():
            mask = np.array(Image.open(path))
            mask[:, 20:] = 255
            Image.fromarray(mask).save(path)
    assert not export_masks(form, out, masks, CLASSES, tmp_path / 'photos', **exact)
    if form == 'label-studio':
        accept(out / FILES[form])
    done = import_masks(out / FILES[form], data, images=tmp_path / 'photos', rest=rest)
    assert not done.failed and not done.missing
    ids = {name: index for index, name in enumerate(CLASSES)}
    order = np.full(256, 255)
    order[: len(done.table.colours)] = [ids[name] for name in done.table.colours]
    for name, path in masks.items():
        found = np.asarray(Image.open((data / 'masks' / name).with_suffix('.png')))
        assert np.array_equal(order[found], np.asarray(Image.open(path))), name


def test_files_name_images_that_are_there(masks, tmp_path):
    out = tmp_path / 'out'
    export_masks('labelme', out, masks, CLASSES, tmp_path / 'photos')
    for name in masks:
        file = (out / 'labelme' / name).with_suffix('.json')
        assert (file.parent / json.loads(file.read_text('utf-8'))['imagePath']).is_file()


def test_tools_get_the_colours_and_the_controls_that_regions_name(masks, tmp_path):
    for form in ('cvat', 'label-studio'):
        export_masks(form, tmp_path, masks, CLASSES, tmp_path / 'photos')
    colours = {name: f'#{bytes(colour).hex()}' for name, colour in CLASSES.items()}
    labels = ElementTree.parse(tmp_path / 'cvat.xml').findall('meta//label')
    assert {label.findtext('name'): label.findtext('color') for label in labels} == colours
    controls = {}
    for each in ElementTree.parse(tmp_path / 'label_studio.xml').getroot():
        if each.tag.endswith('Labels'):
            controls[each.get('name')] = each.tag.lower()
            assert {label.get('value'): label.get('background') for label in each} == colours
    tasks = json.loads((tmp_path / 'label_studio.json').read_text('utf-8'))
    regions = [region for task in tasks for region in task['predictions'][0]['result']]
    assert {region['from_name']: region['type'] for region in regions} == controls


CORRECTION = [[4, 4], [30, 4], [30, 22], [4, 22]]


def add_coco(file, ring, **new):
    with edited(file) as content:
        image = next(each for each in content['images'] if each['file_name'] == 'a.jpg')
        new = dict(segmentation=[np.ravel(ring).tolist()], iscrowd=0) | new
        content['annotations'].append(dict(new, id=9999, image_id=image['id'], category_id=4))


def add_coco_box(file, ring):
    (left, top), (right, bottom) = ring[0], ring[2]
    add_coco(file, ring, segmentation=[], bbox=[left, top, right - left, bottom - top])


@pytest.mark.parametrize('add', [add_coco, add_coco_box])
def test_a_larger_correction_that_is_appended_wins(add, masks, tmp_path):
    """Of COCO, which has no order but in files that this project wrote."""
    out, data, exact = tmp_path / 'out', tmp_path / 'data', dict(tolerance=0, min_area=0)
    export_masks('coco', out, masks, CLASSES, tmp_path / 'photos', **exact)
    add(out / 'coco.json', CORRECTION)
    given = dict(images=tmp_path / 'photos', rest='background', fill_boxes=True)
    done = import_masks(out / 'coco.json', data, **given)
    right = drawn()
    right[4:22, 4:30] = 3
    names = np.array(list(done.table.colours))[np.asarray(Image.open(data / 'masks/a.png'))]
    assert not done.failed and np.array_equal(names, np.array(list(CLASSES))[right])
