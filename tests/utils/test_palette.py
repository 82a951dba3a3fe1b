import itertools

import cv2
import numpy as np
import pytest

from mmseg_cct.utils.palette import distinct_colours


def lab(colours):
    rgb = np.array(colours, np.float32)[None] / 255
    return cv2.cvtColor(rgb, cv2.COLOR_RGB2LAB)[0]


def smallest_distance(colours):
    return min(np.linalg.norm(a - b) for a, b in itertools.combinations(lab(colours), 2))


# in units of CIELAB, of which 2.3 is a just noticeable difference
@pytest.mark.parametrize('count, least', [(8, 60), (20, 35), (150, 10)])
def test_any_two_colours_are_told_apart(count, least):
    colours = distinct_colours(count)
    assert len(colours) == count
    assert smallest_distance(colours) > least


def test_colours_are_neither_near_black_nor_near_white():
    lightness = lab(distinct_colours(50))[:, 0]
    assert lightness.min() > 8 and lightness.max() < 93


def test_the_first_colours_do_not_depend_on_the_number():
    assert distinct_colours(40)[:7] == distinct_colours(7)
