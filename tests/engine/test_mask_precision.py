import math

import numpy as np
import pytest

from mmseg_cct.engine.mask_precision import mask_precision


def naive(areas, rights, z):
    """Precision and its upper end of one class, from one number an image."""
    total = sum(areas)
    if total == 0:
        return math.nan, math.nan
    p = sum(rights) / total
    k = total**2 / sum(area**2 for area in areas)
    # the end of Wilson's interval is the larger root q of (p - q)² = z² q (1 - q) / k
    a, b, c = 1 + z**2 / k, -(2 * p + z**2 / k), p**2
    return p, (-b + math.sqrt(b**2 - 4 * a * c)) / (2 * a)


@pytest.mark.parametrize('z', [0.5, 1.0, 2.0])
def test_precision_and_upper_end_are_those_of_a_naive_rewriting(z):
    rng = np.random.default_rng(0)
    area = rng.integers(0, 50, (6, 5)) * rng.integers(0, 2, (6, 5))
    area[:, 3] = 0
    right = rng.binomial(area, [0.1, 0.5, 0.9, 0.5, 1.0])
    actual = mask_precision(area, right, z)
    expected = [
        naive(*values.T.tolist(), z) for values in np.stack([area, right], 2).swapaxes(0, 1)
    ]
    np.testing.assert_allclose(np.stack(actual, 1), expected, rtol=1e-9)


def test_images_count_and_not_their_pixels():
    area = np.full((10, 1), 20)
    precision, upper = mask_precision(area, area // 2)
    assert precision == 0.5 and 0.5 < upper < 1
    assert mask_precision(1000 * area, 500 * area)[1] == pytest.approx(upper)
    # one image decides nearly all
    area[0] = 10**6
    assert mask_precision(area, area // 2)[1] == pytest.approx(
        mask_precision(area[:1], area[:1] // 2)[1], abs=1e-3
    )
    assert mask_precision(np.full((40, 1), 20), np.full((40, 1), 10))[1] < upper
