import numpy as np
from exports import save
from formats import BOX, drawn, of_coco

from mmseg_cct.annotations.readers import coco, require_reader
from mmseg_cct.annotations.source import Source

RLE = dict(size=[10, 12], counts=[20, 100])


def test_parts_of_an_object_add_up_and_empty_ones_are_none(tmp_path):
    overlapping = [BOX, [4, 2, 10, 2, 10, 6, 4, 6]]
    assert (drawn(coco.read(of_coco(tmp_path, dict(segmentation=overlapping)))) == 0).sum() == 32
    for segmentation in ([BOX, []], BOX):  # the second is of scripts
        (image,) = coco.read(of_coco(tmp_path, dict(segmentation=segmentation))).images
        (shape,) = image.parts
        assert np.array_equal(shape.polygons[0].reshape(-1), BOX)


def test_runs_go_down_the_columns_and_ids_may_be_text(tmp_path):
    source = of_coco(tmp_path, dict(segmentation=RLE, iscrowd=1, image_id='1', category_id='1'))
    assert (drawn(coco.read(source))[:, 2:] == 0).all()
    (image,) = coco.read(source).images
    assert [part.is_crowd for part in image.parts] == [True]


def test_what_has_no_region_lies_where_its_box_or_keypoints_do(tmp_path):
    turned = dict(bbox=[2, 2, 6, 4], attributes=dict(rotation=90))
    keypoints = dict(keypoints=[3, 4, 2, 7, 8, 1])
    source = of_coco(tmp_path, dict(bbox=[2, 2, 6, 4]), turned, keypoints, dict(caption='a'))
    (image,) = coco.read(source).images
    box, turned, keypoints = image.parts
    assert [part.left_out for part in (box, turned, keypoints)] == ['box', 'box', 'keypoints']
    assert box.extent.tolist() == [[2, 2], [8, 6]]
    assert np.allclose(turned.extent, [[3, 1], [7, 7]])
    assert keypoints.extent.tolist() == [[3, 4], [7, 8]]


def test_files_in_several_folders_are_of_the_images_beside_them(tmp_path):
    for folder in ('train', 'valid'):
        of_coco(tmp_path / folder, file='_annotations.coco.json')
        save(tmp_path / folder / '1.jpg', b'')
    source = Source(tmp_path)
    assert require_reader(source) is coco
    annotations = coco.read(source)
    assert list(annotations.classes) == ['car', 'road']
    assert [image.name for image in annotations.images] == ['train/1.jpg', 'valid/1.jpg']
