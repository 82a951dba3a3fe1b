import numpy as np
import pytest
from formats import BOX, drawn, of_labelme

from mmseg_cct.annotations.readers import labelme

CORNERS = np.reshape(BOX, (4, 2)).tolist()


def test_circles_rectangles_and_what_is_ignored(tmp_path):
    source = of_labelme(tmp_path, dict(shape_type='circle', points=[[5, 5], [5, 8]]))
    disc = drawn(labelme.read(source)) == 0
    assert disc.sum() == pytest.approx(np.pi * 9, abs=4) and disc[2:8, 5].all()
    turned = 'quadrilateral', 'rotation'  # the latter of X-AnyLabeling
    for shape_type, points in (
        ('rectangle', [[8, 6], [2, 2]]),
        *((shape_type, CORNERS) for shape_type in turned),
    ):
        source = of_labelme(tmp_path, dict(shape_type=shape_type, points=points))
        assert (drawn(labelme.read(source)) == 0).sum() == 24
    annotations = labelme.read(of_labelme(tmp_path, dict(label='__ignore__', points=CORNERS)))
    assert (drawn(annotations) == 255).sum() == 24 and not annotations.classes
