import numpy as np
import pytest
from exports import png, save
from formats import BOX, of_coco, of_cvat, of_label_studio, of_labelme

from mmseg_cct.annotations.readers import require_reader
from mmseg_cct.annotations.source import Source
from mmseg_cct.errors import UserError

OTHER_SIZE = dict(segmentation=dict(size=[5, 6], counts=[20, 10]))
NO_PICTURE = dict(shape_type='mask', mask='%', points=[[0, 0]])
HALF = dict(type='rectanglelabels', value=dict(x=1, height=1, rectanglelabels=['car']))
BOX_OF = '<box label="{}" xtl="2" ytl="2" xbr="8" ybr="6"/>'


@pytest.mark.parametrize(
    ('form', 'part', 'location'),
    [
        (of_coco, dict(segmentation=[[1, 2, 3]]), 'annotation 5: polygon'),
        (of_coco, OTHER_SIZE, 'annotation 5: RLE'),
        (of_coco, dict(segmentation=[BOX], category_id=3), 'annotation 5: category_id=3'),
        (of_cvat, '<box label="car" xtl="x"/>', 'box 0'),
        (of_cvat, '<spline label="car" points="1,1;2,2"/>', 'spline 0: shape'),
        (of_cvat, BOX_OF.format(' '), "box 0: class ' '"),
        (of_labelme, NO_PICTURE, 'shapes[0]: picture'),
        (of_labelme, dict(shape_type='spline', points=[[5, 5], [5, 8]]), 'shapes[0]: shape_type'),
        (of_label_studio, dict(HALF, image_rotation=90), 'result[0]: image_rotation=90'),
        (of_label_studio, dict(type='splinelabels', value={}), "result[0]: type 'splinelabels'"),
    ],
)
def test_what_cannot_be_drawn_is_an_error_that_says_where(tmp_path, form, part, location):
    source = form(tmp_path, part)
    (image,) = require_reader(source).read(source).images
    with pytest.raises(UserError) as raised:
        list(image.parts)
    (problem,) = raised.value.problems
    assert str(problem.key).startswith(location) and '\n' not in str(problem)


@pytest.mark.parametrize(
    ('name', 'text', 'title'),
    [
        ('labels/0.txt', '0 0.1 0.1 0.5 0.1 0.5 0.5\n', 'YOLO'),
        ('via.json', '{"a.jpg1": {"filename": "a.jpg", "file_attributes": {}}}', 'VIA'),
        ('via.csv', 'filename,file_size,file_attributes,region_count\n', 'VIA'),
        ('ann/a.jpg.json', '{"objects": [{"classTitle": "car"}]}', 'Supervisely'),
        ('a.geojson', '{"type": "FeatureCollection", "features": []}', 'GeoJSON'),
        ('train.csv', 'ImageId,EncodedPixels\na.jpg,1 3\n', 'Kaggle'),
    ],
)
def test_a_format_that_is_not_read_is_named(tmp_path, name, text, title):
    save(tmp_path / name, text.encode())
    with pytest.raises(UserError, match=f'{name}: {title}.* expected '):
        require_reader(Source(tmp_path))


def test_masks_of_roboflow_have_a_table_of_ids(tmp_path):
    for part in ('train', 'valid'):
        mask = np.uint8([[0, 2], [1, 1]])
        save(tmp_path / f'{part}/_classes.csv', b'Pixel Value, Class\n0, rest\n1, car\n2, road\n')
        save(tmp_path / f'{part}/a.rf.0_mask.png', png(mask))
        save(tmp_path / f'{part}/a.rf.0.jpg', png(mask))
    source = Source(tmp_path)
    read = require_reader(source).read(source)
    assert list(read.classes) == ['rest', 'car', 'road']
    assert [image.name for image in read.images] == ['train/a.rf.0', 'valid/a.rf.0']
    assert list(source.images()) == ['train/a.rf.0', 'valid/a.rf.0']
    save(tmp_path / 'valid/_classes.csv', b'Pixel Value, Class\n1, rest\n')
    with pytest.raises(UserError, match=r'valid/_classes\.csv: id 1'):
        require_reader(source).read(source)
