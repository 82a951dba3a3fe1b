import numpy as np
from exports import COLOURS, save
from formats import SIZE, drawn
from PIL import Image

from mmseg_cct.annotations.readers import (
    segmentation_mask,
)
from mmseg_cct.annotations.source import Source


def test_a_palette_of_ids_is_told_from_one_of_colours(tmp_path):
    ids = np.zeros(SIZE[::-1], np.uint8)
    ids[2:6, 2:8], ids[0, 0] = 1, 255
    for colours, void in ((COLOURS['car'], (224, 224, 192)), ((9, 9, 9), (1, 1, 1))):
        picture = Image.fromarray(ids)
        picture.putpalette([0, 0, 0, *colours, *[0] * 759, *void])
        path = tmp_path / 'SegmentationClass/1.png'
        path.parent.mkdir(exist_ok=True)
        picture.save(path)
        save(tmp_path / 'labelmap.txt', b'background:0,0,0::\ncar:255,0,0::\n')
        mask = drawn(segmentation_mask.read(Source(tmp_path)))
        assert (mask == 0).sum() == 24 and mask[0, 0] == 255 and (mask == 9).sum() == 95
