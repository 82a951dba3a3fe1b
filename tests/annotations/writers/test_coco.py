import json

import numpy as np
from drawing import CLASSES
from PIL import Image

from mmseg_cct.annotations.export import export_masks


def test_coco_has_the_box_and_the_area_of_each_region(tmp_path):
    mask = np.zeros((20, 30), np.uint8)
    mask[3:10, 5:25], mask[12:19, 2:12] = 1, 2
    mask[14:16, 4:6] = 0  # a hole
    Image.fromarray(mask).save(tmp_path / 'a.png')
    export_masks(
        'coco', tmp_path, {'a.png': tmp_path / 'a.png'}, CLASSES, tmp_path, tolerance=0, min_area=0
    )
    regions = json.loads((tmp_path / 'coco.json').read_text('utf-8'))['annotations']
    keys = 'category_id', 'bbox', 'area', 'iscrowd'
    assert [[region[key] for key in keys] for region in regions] == [
        [2, [5, 3, 20, 7], 140, 0],
        [3, [2, 12, 10, 7], 66, 0],
    ]
