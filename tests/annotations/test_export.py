import base64
import io
import json
from xml.etree import ElementTree

import numpy as np
import pytest
from drawing import CLASSES
from importing import import_masks
from PIL import Image

from mmseg_cct.annotations.export import export_masks
from mmseg_cct.errors import UserError

FILES = {
    'coco': 'coco.json',
    'cvat': 'cvat.xml',
    'labelme': 'labelme',
    'label-studio': 'label_studio.json',
}


def accept(file):
    """Turns predictions into annotations, as somebody who submits them in Label Studio does."""
    tasks = json.loads(file.read_text('utf-8'))
    for task in tasks:
        task['annotations'] = task.pop('predictions')
    file.write_text(json.dumps(tasks))


@pytest.mark.parametrize('form', sorted(FILES))
@pytest.mark.parametrize('undrawn', ['background', 'ignore'])
def test_in_and_out_are_inverse(form, undrawn, masks, tmp_path):
    """Where the rest is ignored, the background is drawn and the right side left out."""
    out, data = tmp_path / 'out', tmp_path / 'data'
    exact = dict(tolerance=0, min_area=0, background=undrawn == 'ignore')
    if undrawn == 'ignore':
        for path in masks.values():
            mask = np.array(Image.open(path))
            mask[:, 20:] = 255
            Image.fromarray(mask).save(path)
    for _ in range(2):  # a second run writes the same again
        export_masks(form, out, masks, CLASSES, tmp_path / 'photos', **exact)
    if form == 'label-studio':
        accept(out / FILES[form])
    done = import_masks(out / FILES[form], data, images=tmp_path / 'photos', undrawn=undrawn)
    assert not done.failed and not done.missing
    ids = {name: index for index, name in enumerate(CLASSES)}
    order = np.full(256, 255)
    order[: len(done.table.colors)] = [ids[name] for name in done.table.colors]
    for name, path in masks.items():
        mask = np.asarray(Image.open((data / 'masks' / name).with_suffix('.png')))
        assert np.array_equal(order[mask], np.asarray(Image.open(path))), name


def test_files_name_images_that_are_there(masks, tmp_path):
    out = tmp_path / 'out'
    export_masks('labelme', out, masks, CLASSES, tmp_path / 'photos')
    for name in masks:
        file = (out / 'labelme' / name).with_suffix('.json')
        content = json.loads(file.read_text('utf-8'))
        assert (file.parent / content['imagePath']).is_file()
        for shape in content['shapes']:  # labelme crops a mask to its two corners
            if shape['shape_type'] == 'mask':
                with Image.open(io.BytesIO(base64.b64decode(shape['mask']))) as picture:
                    size = np.subtract(*shape['points'][::-1]) + 1
                    assert size.tolist() == list(picture.size)


def test_label_studio_gets_the_controls_that_regions_name(masks, tmp_path):
    export_masks('label-studio', tmp_path, masks, CLASSES, tmp_path / 'photos')
    controls = ElementTree.parse(tmp_path / 'label_studio.xml').getroot()
    controls = {element.get('name'): element.tag.lower() for element in controls if len(element)}
    tasks = json.loads((tmp_path / 'label_studio.json').read_text('utf-8'))
    regions = [region for task in tasks for region in task['predictions'][0]['result']]
    assert {region['from_name']: region['type'] for region in regions} == controls


def test_annotations_that_somebody_edited_stay_and_a_stop_leaves_no_part(masks, tmp_path):
    arguments = tmp_path / 'out', masks, CLASSES, tmp_path / 'photos'
    export_masks('coco', *arguments)
    file, before = tmp_path / 'out/coco.json', (tmp_path / 'out/coco.json').read_text()

    def stop():
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        export_masks('coco', *arguments, progress=stop)
    assert file.read_text() == before
    file.write_text('corrected')
    with pytest.raises(UserError) as raised:
        export_masks('coco', *arguments)
    assert raised.value.problems[0].key == file and file.read_text() == 'corrected'
    assert list(file.parent.iterdir()) == [file]


def test_coco_has_the_box_and_the_area_of_each_region(tmp_path):
    mask = np.zeros((20, 30), np.uint8)
    mask[3:10, 5:25], mask[12:19, 2:12] = 1, 2
    mask[14:16, 4:6] = 0  # a hole
    Image.fromarray(mask).save(tmp_path / 'a.png')
    masks, exact = {'a.png': tmp_path / 'a.png'}, dict(tolerance=0, min_area=0)
    export_masks('coco', tmp_path, masks, CLASSES, tmp_path, **exact)
    regions = json.loads((tmp_path / 'coco.json').read_text('utf-8'))['annotations']
    keys = 'category_id', 'bbox', 'area', 'iscrowd'
    assert [[region[key] for key in keys] for region in regions] == [
        [2, [5, 3, 20, 7], 140, 0],
        [3, [2, 12, 10, 7], 66, 0],
    ]
