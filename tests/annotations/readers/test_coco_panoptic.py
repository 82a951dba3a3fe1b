import numpy as np
import pytest
from exports import save, write
from formats import SIZE, drawn
from PIL import Image

from mmseg_cct.annotations.readers import coco_panoptic, require_reader
from mmseg_cct.annotations.source import Source
from mmseg_cct.errors import UserError


def test_panoptic_coco_is_read_with_its_pngs(tmp_path):
    ids = np.zeros(SIZE[::-1], int)
    ids[:, :4], ids[:, 8:] = 5 + 256 * 7, 3 + 65536 * 2
    rgb = np.stack([ids % 256, ids // 256 % 256, ids // 65536], -1).astype(np.uint8)
    segments = [
        dict(id=5 + 256 * 7, category_id=9),
        dict(id=3 + 65536 * 2, category_id=2, iscrowd=1),
    ]
    content = dict(
        images=[dict(id=1, file_name='1.jpg', width=SIZE[0], height=SIZE[1])],
        annotations=[dict(image_id=1, file_name='1.png', segments_info=segments)],
        categories=[dict(id=9, name='water'), dict(id=2, name='cat')],
    )
    write(tmp_path / 'panoptic_val.json', content)
    with pytest.raises(UserError, match='a COCO panoptic JSON without its'):
        coco_panoptic.read(Source(tmp_path / 'panoptic_val.json'))
    (tmp_path / 'panoptic_val').mkdir()
    Image.fromarray(rgb).save(tmp_path / 'panoptic_val/1.png')
    save(tmp_path / '1.png', b'a photo')
    source = Source(tmp_path)
    assert require_reader(source) is coco_panoptic
    mask = drawn(coco_panoptic.read(source))
    assert (mask[:, :4] == 0).all() and (mask[:, 4:8] == 9).all() and (mask[:, 8:] == 255).all()
    assert source.images() == {'1': '1.png'}
