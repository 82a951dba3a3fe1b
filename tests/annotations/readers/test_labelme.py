import base64
import io

import numpy as np
import pytest
from formats import BOX, drawn, of_labelme
from PIL import Image

from mmseg_cct.annotations.readers import labelme
from mmseg_cct.annotations.source import Source


def test_labelme_circles_rectangles_and_what_is_ignored(tmp_path):
    source = of_labelme(tmp_path / '1.json', shape_type='circle', points=[[5, 5], [5, 8]])
    disc = drawn(labelme.read(source)) == 0
    assert disc.sum() == pytest.approx(np.pi * 9, abs=4) and disc[2:8, 5].all()
    for kind, points in ('rectangle', [[8, 6], [2, 2]]), ('quadrilateral', np.reshape(BOX, (4, 2))):
        source = of_labelme(tmp_path / '1.json', shape_type=kind, points=np.array(points).tolist())
        assert (drawn(labelme.read(source)) == 0).sum() == 24
    data = io.BytesIO()
    Image.new('L', (2, 2), 255).save(data, 'PNG')
    mask = dict(shape_type='mask', mask=base64.b64encode(data.getvalue()).decode(), group_id=3)
    (image,) = labelme.read(of_labelme(tmp_path / '1.json', points=[[1, 1]], **mask)).images
    assert image.shapes[0].group == 3
    source = of_labelme(
        tmp_path / '1.json', label='__ignore__', points=np.reshape(BOX, (4, 2)).tolist()
    )
    annotations = labelme.read(source)
    assert (drawn(annotations) == 255).sum() == 24 and not annotations.classes


@pytest.mark.parametrize('listed', [True, False])
def test_labelme_spaces_around_a_label_do_not_count(tmp_path, listed):
    points = np.reshape(BOX, (4, 2)).tolist()
    of_labelme(tmp_path / '1.json', label=' car ', points=points)
    if listed:
        (tmp_path / 'labels.txt').write_text('car \n')
    annotations = labelme.read(Source(tmp_path))
    assert list(annotations.classes) == ['car'] and (drawn(annotations) == 0).sum() == 24
