from pathlib import Path

import cv2
import numpy as np
import pytest
from PIL import Image

from mmseg_cct.engine.doubtful_masks import are_doubtful, contradictions


def save(path, pixels):
    Path(path).parent.mkdir(exist_ok=True)
    Image.fromarray(pixels).save(path)
    return path


@pytest.fixture
def folder(tmp_path):
    """Four images and their masks."""
    images, masks, rng = {}, {}, np.random.default_rng(0)
    for name in '0123':
        pixels = rng.integers(0, 256, (40, 50, 3), np.uint8)
        images[name] = str(save(tmp_path / f'images/{name}.png', pixels))
        masks[name] = str(save(tmp_path / f'masks/{name}.png', pixels[..., 0] // 128))
    return images, masks


def test_a_score_is_doubtful_if_it_is_high_and_far_above_the_median_of_the_others():
    assert are_doubtful([0.2, 0.3, 2.1, 0.4, 0.1]) == [False, False, True, False, False]
    assert not any(are_doubtful([0.1, 0.1, 1.9, 0.1, 0.1]))
    assert not any(are_doubtful([1.0, 1.1, 2.5, 1.2, 1.1]))
    assert not any(are_doubtful([0.1, 0.1, 4.0, 0.1]))  # too few to say so


def test_equal_images_with_different_masks_are_found(folder, tmp_path):
    images, masks = folder
    assert contradictions(images, masks) == []
    pixels = cv2.imread(images['2'])[..., ::-1]
    images['twin'] = str(save(tmp_path / 'images/twin.bmp', pixels))  # other bytes, equal pixels
    masks['twin'] = str(save(tmp_path / 'masks/twin.png', np.zeros((40, 50), np.uint8)))
    assert contradictions(images, masks) == [('2', 'twin')]
    save(masks['twin'], cv2.imread(masks['2'], cv2.IMREAD_UNCHANGED))
    assert contradictions(images, masks) == []
