import cv2
import numpy as np
import pytest

from mmseg_cct.datasets.files.object_widths import ObjectWidths, widths_by_area


def test_a_width_is_that_of_the_widest_circle_inside_and_of_a_line_its_thickness():
    shown = np.zeros((60, 100), bool)
    shown[5:12, 3:90] = True  # a bar of 7
    shown[20:25, 20:25] = True  # a square of 5
    shown[40, 40] = True
    shown[50:60, 0:100] = True  # cut by the edge, which counts as its end
    areas, widths = widths_by_area(shown).T
    assert areas.tolist() == [7 * 87, 25, 1, 1000]
    assert widths.tolist() == [7, 5, 1, pytest.approx(10, abs=1)]
    drawn = np.zeros((200, 300), np.uint8)
    cv2.line(drawn, (10, 10), (290, 190), 1, 1)
    ((_, width),) = widths_by_area(drawn)
    assert width == 1


def test_the_typical_object_holds_half_of_the_pixels():
    widths = ObjectWidths(['background', 'dot', 'absent'])
    ids = np.zeros((100, 100), np.uint8)
    ids[::10, ::10] = 1  # a hundred dots
    widths.add(ids)
    assert widths.typical() == {'dot': 1}
    ids[:] = 0
    ids[20:35, 20:35] = 1
    ids[0, 0] = 255
    widths.add(ids)
    assert widths.typical() == {'dot': 15}
