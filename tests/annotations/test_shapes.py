import numpy as np
import pytest

from mmseg_cct.annotations.shapes import Shape
from mmseg_cct.errors import UserError

SQUARE = np.array([[0, 0], [2, 0], [2, 2], [0, 2]], float)


@pytest.mark.parametrize('ring', [SQUARE[:2], SQUARE.reshape(-1), SQUARE * np.nan])
def test_points_are_pairs_of_pixels(ring):
    with pytest.raises(UserError):
        Shape('road', [SQUARE, ring])
    if len(ring) != 2:  # enough for a line
        with pytest.raises(UserError):
            Shape('road', [ring], left_out='line')


def test_a_mask_keeps_the_part_around_its_pixels():
    mask = np.zeros((9, 8), bool)
    mask[2:5, 3:7] = True
    shape = Shape.of_mask('road', mask)
    assert (shape.offset, shape.mask.shape) == ((3, 2), (3, 4))
    assert shape.extent.tolist() == [[3, 2], [7, 5]]
