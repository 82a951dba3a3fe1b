import numpy as np
import pytest

from mmseg_cct.annotations.drawing import draw_whole, rasterize
from mmseg_cct.annotations.shapes import Shape


def square(left, top, side):
    return np.add([[0.0, 0], [side, 0], [side, side], [0, side]], [left, top])


def naive(rings, size):
    """Counts for each centre the edges above it."""
    mask = np.zeros(size[::-1], bool)
    for y, x in np.ndindex(mask.shape):
        for ring in rings:
            for (x0, y0), (x1, y1) in zip(ring, np.roll(ring, -1, 0)):
                if (x0 <= x + 0.5) != (x1 <= x + 0.5):
                    mask[y, x] ^= y0 + (x + 0.5 - x0) * (y1 - y0) / (x1 - x0) <= y + 0.5
    return mask


@pytest.mark.parametrize('seed', range(6))
def test_polygons_are_filled_by_the_even_odd_rule(seed):
    rng = np.random.default_rng(seed)
    size = tuple(rng.integers(1, 16, 2).tolist())
    rings = [rng.uniform(-5, 20, (rng.integers(3, 8), 2)) for _ in range(rng.integers(1, 4))]
    if seed % 2:  # through centres and along edges of pixels
        rings = [np.round(ring * 2) / 2 for ring in rings]
    assert np.array_equal(draw_whole(Shape('x', rings), size), naive(rings, size))


def test_a_mask_beyond_the_image_is_cut():
    mask = np.ones((4, 4), bool)
    for offset, pixels in (((-2, -3), 2), ((7, 6), 2), ((9, 0), 0), ((-4, 0), 0)):
        assert draw_whole(Shape('x', mask=mask, offset=offset), (8, 8)).sum() == pixels


def test_higher_ones_cover_and_else_small_ones():
    big, small = Shape('a', [square(0, 0, 4)]), Shape('b', [square(1, 1, 2)])
    ids = {'a': 0, 'b': 1}
    for shapes in ([big, small], [small, big]):
        assert (rasterize(shapes, (4, 4), ids, 255)[0] == 1).sum() == 4
    top = Shape('a', big.polygons, z=1)
    assert not rasterize([top, small], (4, 4), ids, 255)[0].any()
    ignored = Shape(None, mask=np.ones((1, 1), bool), z=2)
    assert rasterize([top, ignored], (4, 4), ids, 7)[0][0, 0] == 255
    assert (rasterize([], (4, 4), ids, 7)[0] == 7).all()


def test_a_mask_keeps_the_part_around_its_pixels():
    mask = np.zeros((9, 8), bool)
    mask[2:5, 3:7] = True
    shape = Shape.of_mask('road', mask)
    assert (shape.offset, shape.mask.shape) == ((3, 2), (3, 4))
    assert shape.extent.tolist() == [[3, 2], [7, 5]]
