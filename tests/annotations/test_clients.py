"""Other projects read what is written, and what they write is read: `pip install .[clients]`."""

import json
from types import SimpleNamespace

import numpy as np
import pytest
from drawing import CLASSES, drawn
from folders import save
from importing import import_masks
from PIL import Image

from mmseg_cct.annotations.export import export_masks

SIZE = WIDTH, HEIGHT = 150, 111
MASK = drawn().repeat(3, 0).repeat(3, 1)
NAMES = list(CLASSES)


@pytest.fixture
def scene(tmp_path):
    """A photo and its mask; the mask as a file for a tool, and a tool's file as a mask."""
    save(tmp_path / 'true/a.png', MASK)
    save(tmp_path / 'photos/a.png', MASK[..., None].repeat(3, 2))
    photos = tmp_path / 'photos'

    def write(form):
        masks = {'a.png': tmp_path / 'true/a.png'}
        export_masks(form, tmp_path / 'x', masks, CLASSES, photos, tolerance=0, min_area=0)
        return tmp_path / 'x'

    def read(source):
        done = import_masks(source, tmp_path / 'data', images=photos, undrawn='background')
        assert not done.failed
        names = [*done.table.colors]
        mask = np.asarray(Image.open(tmp_path / 'data/masks/a.png'))
        return np.array([NAMES.index(name) for name in names])[mask]

    return SimpleNamespace(root=tmp_path, write=write, read=read)


def agreement(mask):
    return (mask == MASK).mean()


def regions():
    """The class and the pixels of each."""
    return [(index, np.equal(MASK, index)) for index in range(1, len(NAMES))]


def test_pycocotools(scene):
    coco = pytest.importorskip('pycocotools.coco')
    read = coco.COCO(scene.write('coco') / 'coco.json')
    mask = np.zeros_like(MASK)
    for annotation in read.loadAnns(read.getAnnIds()):
        mask[read.annToMask(annotation) > 0] = annotation['category_id'] - 1
    assert agreement(mask) == 1


def test_datumaro(scene):
    datumaro, tools = map(pytest.importorskip, ('datumaro', 'pycocotools.mask'))
    save(scene.root / 'given/images/a.png', MASK)
    (scene.write('cvat') / 'cvat.xml').rename(scene.root / 'given/default.xml')
    read = datumaro.Dataset.import_from(str(scene.root / 'given'), 'cvat')
    labels = read.categories()[datumaro.AnnotationType.label]
    mask = np.zeros_like(MASK)
    for part in sorted(next(iter(read)).annotations, key=lambda part: part.z_order):
        name = NAMES.index(labels[part.label].name)
        if part.type == datumaro.AnnotationType.mask:
            mask[np.asarray(part.image, bool)] = name
        elif part.type == datumaro.AnnotationType.polygon:
            runs = tools.frPyObjects([list(part.points)], HEIGHT, WIDTH)
            mask[tools.decode(tools.merge(runs)) > 0] = name
    assert agreement(mask) > 0.99

    annotations = [
        datumaro.Mask(region, label=index - 1, z_order=index) for index, region in regions()
    ]
    photo = datumaro.Image.from_numpy(np.zeros((HEIGHT, WIDTH, 3), np.uint8))
    made = datumaro.Dataset.from_iterable(
        [datumaro.DatasetItem('a', media=photo, annotations=annotations)], categories=NAMES[1:]
    )
    made.export(str(scene.root / 'made'), 'cvat')
    assert agreement(scene.read(scene.root / 'made')) == 1


def test_labelme(scene):
    # its modules are private from labelme 7 on, which needs Python 3.12
    files = pytest.importorskip('labelme._label_file', reason='labelme 7 is not installed')
    from labelme._utils import shapes_to_label

    read = files.read_label_file(filename=str(scene.write('labelme') / 'labelme/a.json'))
    ids = {name: index for index, name in enumerate(NAMES)}
    mask, _ = shapes_to_label(img_shape=MASK.shape, shapes=read.shapes, label_name_to_value=ids)
    assert agreement(mask) > 0.9  # its polygons hold the pixels that an outline touches


def test_label_studio(scene):
    brush = pytest.importorskip('label_studio_sdk.converter.brush')
    (task,) = json.loads((scene.write('label-studio') / 'label_studio.json').read_text('utf-8'))
    result = task['predictions'][0]['result']
    brushes = [part['value'] for part in result if part['type'] == 'brushlabels']
    assert brushes
    for value in brushes:
        opacity = brush.decode_rle(value['rle']).reshape(HEIGHT, WIDTH, 4)[..., 3] > 0
        assert (MASK[opacity] == NAMES.index(value['brushlabels'][0])).all()
    drawings = []
    for index, region in regions():
        pixels = (region[..., None] * np.full(4, 255)).astype(np.uint8)
        value = dict(rle=brush.encode_rle(pixels.ravel()), brushlabels=[NAMES[index]], format='rle')
        size = dict(original_width=WIDTH, original_height=HEIGHT)
        drawings.append(dict(size, id=str(index), type='brushlabels', value=value))
    task = dict(id=1, data=task['data'], annotations=[dict(result=drawings)])
    (scene.root / 'y.json').write_text(json.dumps([task]))
    assert agreement(scene.read(scene.root / 'y.json')) == 1
