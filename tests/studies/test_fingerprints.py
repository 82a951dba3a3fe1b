import cv2
import numpy as np
import pytest

from mmseg_cct.studies.fingerprints import find_twins, fingerprint


def scene(seed, shift=0):
    grid = np.random.default_rng(seed).integers(0, 256, (8, 12, 3), np.uint8)
    return np.roll(cv2.resize(grid, (240, 160), interpolation=cv2.INTER_CUBIC), shift, 1)


@pytest.fixture
def others():
    return {f'val{seed}': fingerprint(scene(seed)) for seed in range(20)}


@pytest.mark.parametrize(
    'change',
    [
        lambda image: cv2.resize(image, (120, 90)),
        lambda image: cv2.imdecode(cv2.imencode('.jpg', image, [1, 30])[1], 1),
        lambda image: np.clip(image * 0.7 + 20, 0, 255).astype(np.uint8),
        lambda image: np.roll(image, 2, 1),  # the frame after
    ],
)
def test_a_changed_copy_is_a_twin(change, others):
    assert find_twins({'a': fingerprint(change(scene(3)))}, others) == {'a': 'val3'}


def test_other_scenes_are_none(others):
    images = {str(seed): fingerprint(scene(seed)) for seed in range(20, 40)}
    assert find_twins(images, others) == {}
    assert find_twins(images, {}) == find_twins({}, others) == {}
    # twins differ in 40 bits at most
    first, twin, other = (np.packbits(np.arange(256) < n).tobytes().hex() for n in (0, 40, 41))
    assert find_twins(dict(a=twin, b=other), dict(val=first)) == dict(a='val')
