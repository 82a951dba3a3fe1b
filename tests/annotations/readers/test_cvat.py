import numpy as np
import pytest
from formats import drawn, of_cvat

from mmseg_cct.annotations.readers import cvat


@pytest.mark.parametrize(
    ('shape', 'pixels'),
    [
        ('<box label="car" xtl="2" ytl="2" xbr="8" ybr="6" rotation="90"/>', (5, 4, 4, 6)),
        ('<box label="car" xtl="2" ytl="2" xbr="8" ybr="6"/>', (5, 4, 6, 4)),
        ('<ellipse label="car" cx="5" cy="4" rx="3" ry="2"/>', (5, 4, 6, 4)),
        ('<ellipse label="car" cx="5" cy="4" rx="3" ry="2" rotation="90"/>', (5, 4, 4, 6)),
    ],
)
def test_boxes_and_ellipses_turn_about_their_centre(tmp_path, shape, pixels):
    y, x = np.nonzero(drawn(cvat.read(of_cvat(tmp_path, shape))) == 0)
    box = (x.min() + x.max() + 1) / 2, (y.min() + y.max() + 1) / 2, np.ptp(x) + 1, np.ptp(y) + 1
    assert box == pixels
    share = len(x) / (pixels[2] * pixels[3])
    assert share == pytest.approx(np.pi / 4, abs=0.06) if 'ellipse' in shape else share == 1


def test_labels_that_the_file_does_not_list_are_those_of_the_shapes(tmp_path):
    file = of_cvat(tmp_path, '<box label="car" xtl="2" ytl="2" xbr="8" ybr="6"/>')
    text = file.path.read_text()
    start, end = text.index('<meta>'), text.index('</meta>') + len('</meta>')
    file.path.write_text(text[:start] + text[end:])
    assert list(cvat.read(file).classes) == ['car']
