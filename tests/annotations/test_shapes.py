import numpy as np

from mmseg_cct.annotations.shapes import Shape


def test_a_mask_keeps_the_part_around_its_pixels():
    mask = np.zeros((9, 8), bool)
    mask[2:5, 3:7] = True
    shape = Shape.of_mask('road', mask)
    assert (shape.offset, shape.mask.shape) == ((3, 2), (3, 4))
    assert shape.extent.tolist() == [[3, 2], [7, 5]]
