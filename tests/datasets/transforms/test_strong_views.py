import colorsys

import numpy as np
import pytest
import torch
from mmengine.structures import PixelData
from mmseg.structures import SegDataSample

from mmseg_cct.datasets.transforms import StrongViews
from mmseg_cct.datasets.transforms.strong_views import Photometry, apply_photometry
from mmseg_cct.utils.seed import seeded_random_state


@pytest.fixture
def image():
    return np.random.default_rng(0).integers(0, 256, (6, 7, 3), np.uint8)


def apply(image, *jitter, gray=False, sigma=None):
    return apply_photometry(image, Photometry(jitter, gray, sigma))


@pytest.mark.parametrize('shift', [-0.25, 0.1])
def test_a_hue_shift_turns_the_colour_circle(image, shift):
    image = image.astype(np.float32)  # mmcv shifts the hue of bytes, in its 8 bits
    expected = np.empty_like(image)
    for index in np.ndindex(image.shape[:2]):
        h, s, v = colorsys.rgb_to_hsv(*image[index][::-1] / 255)
        expected[index] = 255 * np.array(colorsys.hsv_to_rgb((h + shift) % 1, s, v))[::-1]
    np.testing.assert_allclose(apply(image, ('hue', shift)), expected, atol=0.1)
    shifted = apply(image.astype(np.uint8), ('hue', shift)).astype(float)
    assert np.abs(shifted - expected).mean() <= 2.5


def test_each_operation_changes_what_it_is_named_after(image):
    assert apply(image, ('brightness', 0.5)).mean() == pytest.approx(image.mean() / 2, abs=1)
    flat = apply(image, ('contrast', 0.5))
    assert flat.std() == pytest.approx(image.std() / 2, rel=0.05)
    grey = apply(image, ('saturation', 0.0))
    assert np.ptp(grey, axis=2).max() <= 1
    assert np.abs(grey.astype(int) - apply(image, gray=True)).max() <= 1
    assert apply(image, sigma=2.0).std() < image.std() / 2
    first, second = ('brightness', 1.5), ('saturation', 0.5)
    both = apply(image, first, second)
    assert np.array_equal(both, apply(apply(image, first), second))
    assert not np.array_equal(both, apply(image, second, first))


class TestDraw:
    def test_follows_the_probabilities_and_ranges(self):
        with seeded_random_state(0):
            drawn = [StrongViews().draw() for _ in range(2000)]
        for share, expected in (
            (np.mean([bool(d.jitter) for d in drawn]), 0.8),
            (np.mean([d.gray for d in drawn]), 0.2),
            (np.mean([d.sigma is not None for d in drawn]), 0.5),
        ):
            assert share == pytest.approx(expected, abs=0.04)
        factors = {}
        for name, factor in (pair for d in drawn for pair in d.jitter):
            factors.setdefault(name, []).append(factor)
        assert factors.keys() == {'brightness', 'contrast', 'saturation', 'hue'}
        for name, values in factors.items():
            low, high = (-0.25, 0.25) if name == 'hue' else (0.5, 1.5)
            assert low <= min(values) < low + 0.02 and high - 0.02 < max(values) <= high
        sigmas = [d.sigma for d in drawn if d.sigma is not None]
        assert 0.1 <= min(sigmas) < 0.15 and 1.95 < max(sigmas) <= 2.0
        orders = {tuple(name for name, _ in d.jitter) for d in drawn if d.jitter}
        assert len(orders) == 24  # all orders of the four


def test_filled_pixels_keep_their_colour(image):
    sample, valid = SegDataSample(), torch.zeros(image.shape[:2], dtype=torch.bool)
    valid[:4, :5] = True
    sample.valid_mask = PixelData(data=valid[None])
    weak = torch.from_numpy(image.transpose(2, 0, 1).copy())
    transform = StrongViews(jitter_prob=1.0, blur_prob=1.0, hue=0.0)
    with seeded_random_state(1):
        (strong,) = transform(dict(inputs=weak, data_samples=sample))['strong_views']
    assert torch.equal(strong[:, ~valid], weak[:, ~valid])
    assert (strong != weak)[:, valid].float().mean() > 0.5


def test_operations_on_five_channels():
    factor = 1.5
    image = np.random.default_rng(0).uniform(0, 255, (6, 7, 5)).astype(np.float32)
    for name, fixed in (('brightness', 0), ('contrast', image.mean())):
        expected = (fixed + factor * (image - fixed)).clip(0, 255)
        np.testing.assert_allclose(apply(image, (name, factor)), expected, atol=0.01)
    for name in ('saturation', 'hue'):
        assert np.array_equal(apply(image, (name, factor)), image)
    expected = image.mean(2, keepdims=True).repeat(5, 2)
    np.testing.assert_allclose(apply(image, gray=True), expected, atol=0.01)
