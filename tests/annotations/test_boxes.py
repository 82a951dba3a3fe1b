"""Boxes of files of instances bound their objects; other boxes are regions."""

import numpy as np
import pytest

from mmseg_cct.annotations.boxes import bounding_boxes
from mmseg_cct.annotations.shapes import LeftOut, Shape

TRIANGLE = np.array([[10, 10], [50, 20], [20, 40]], float)
OTHER = np.add(TRIANGLE, [60, 0])


def box(left, top, right, bottom, label='car', **more):
    ring = np.array([[left, top], [right, top], [right, bottom], [left, bottom]], float)
    return Shape(label, [ring], is_box=True, **more)


@pytest.mark.parametrize(
    ('drawn', 'bounds'),
    [
        (box(10, 10, 50, 40), True),
        (box(9, 8, 51, 42), True),  # by hand
        (box(10, 10, 50, 40, 'road'), False),
        (box(10, 10, 40, 40), False),
        (box(0, 0, 60, 60), False),
        (box(10, 10, 110, 40), False),
        (box(10, 10, 110, 40, group=3), False),
        (box(0, 0, 60, 60, group=1), True),  # loosely around the shape of its group
        (box(0, 0, 60, 60, 'road', group=1), False),
        (box(10, 10, 50, 40, 'any', group=1), True),
        (box(10, 10, 110, 40, group=2), True),  # around both parts
        (box(60, 5, 65, 10, group=1), False),  # another part
        (LeftOut('box', np.array([[10, 10], [50, 40.0]]), 'car'), True),
        (LeftOut('box', None, 'car'), False),
        (LeftOut('polyline', np.array([[10, 10], [50, 40.0]]), 'car'), False),
        (Shape('car', [TRIANGLE]), False),
    ],
)
def test_a_box_bounds_what_has_its_extent_or_group(drawn, bounds):
    group = 2 if getattr(drawn, 'group', None) == 2 else 1
    objects = [Shape('car', [ring], group=group) for ring in (TRIANGLE, OTHER)]
    if group == 1:
        objects = [objects[0], Shape('car', [OTHER])]
    assert bounding_boxes([drawn, *objects]) == ([drawn] if bounds else [])


def test_boxes_alone_and_empty_masks_bound_nothing():
    empty = Shape('car', mask=np.zeros((30, 40), bool), offset=(10, 10))
    assert bounding_boxes([box(10, 10, 50, 40), box(10, 10, 50, 40), empty]) == []


def test_the_parts_of_a_shape_count_together():
    mask = np.zeros((30, 40), bool)
    mask[0, 0] = mask[-1, -1] = True
    around = box(10, 10, 50, 40)
    assert bounding_boxes([around, Shape('car', mask=mask, offset=(10, 10))]) == [around]
