"""A shape is checked where it is made."""

import numpy as np
import pytest

from mmseg_cct.annotations.shapes import MAX_POINTS, Shape
from mmseg_cct.errors import UserError

SQUARE = np.array([[0, 0], [2, 0], [2, 2], [0, 2]], float)


@pytest.mark.parametrize(
    ('given', 'message'),
    [
        (dict(polygons=[SQUARE[:2]]), r'shape \(2, 2\); expected three points'),
        (dict(polygons=[SQUARE.reshape(-1)]), r'shape \(8,\); expected three points'),
        (dict(polygons=[np.zeros((MAX_POINTS + 1, 2))]), '200001 points; expected at most'),
        (dict(polygons=[SQUARE, SQUARE * np.nan]), 'a point at (nan|inf); expected pixels'),
        (dict(polygons=[SQUARE + np.inf]), 'a point at (nan|inf); expected pixels'),
        (dict(mask=np.ones((2, 2, 4), bool)), r'shape \(2, 2, 4\); expected height and width'),
        (dict(), 'expected polygons, or a mask'),
        (dict(polygons=[SQUARE], mask=np.ones((1, 1), bool)), 'expected polygons, or a mask'),
    ],
)
def test_a_damaged_shape_is_refused(given, message):
    with pytest.raises(UserError, match=message):
        Shape('road', **given)
