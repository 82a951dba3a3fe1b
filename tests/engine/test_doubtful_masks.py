from pathlib import Path

import cv2
import numpy as np
import pytest
from PIL import Image

from mmseg_cct.engine.doubtful_masks import are_doubtful, contradictions, fit_masks
from mmseg_cct.errors import UserError


def save(path, pixels):
    Path(path).parent.mkdir(exist_ok=True)
    Image.fromarray(pixels).save(path)
    return path


def encode(picture):
    """Colours and noise, on a grid of 10×8 cells."""
    noise = np.random.default_rng(int(picture.sum())).normal(size=(8, 10, 1)) * 5
    return np.concatenate([cv2.resize(picture, (10, 8)), noise], 2).astype(np.float32)


@pytest.fixture
def folder(tmp_path):
    """Images and masks of two halves, red and blue; the last image has no mask."""
    images, masks = {}, {}
    for index in range(9):
        ids = np.zeros((40, 50), np.uint8)
        ids[:, 5 * index :] = 1
        pixels = np.random.default_rng(index).integers(0, 40, (40, 50, 3), np.uint8)
        pixels[ids == 0, 0] += 200
        pixels[ids == 1, 2] += 200
        images[str(index)] = str(save(tmp_path / f'images/{index}.png', pixels))
        if index < 8:
            masks[str(index)] = str(save(tmp_path / f'masks/{index}.png', ids))
    return images, masks


def fitted(images, masks):
    return fit_masks(lambda _, picture: encode(picture), images, masks, 2)


def test_the_mask_that_the_others_contradict_comes_first(folder):
    images, masks = folder
    right = fitted(images, masks)
    assert not any(mask.is_doubtful for mask in right.judged)
    assert right.ious == pytest.approx([1, 1]) and right.confusion.sum() == 8 * 80
    save(masks['4'], 1 - cv2.imread(masks['4'], cv2.IMREAD_UNCHANGED))
    judged = fitted(images, masks).judged
    assert [mask.name for mask in judged if mask.is_doubtful] == ['4'] == [judged[0].name]
    assert judged[0].score > 2 > judged[1].score
    # what they expect is what was there
    assert (judged[0].expected == np.repeat([[0, 1]], [4, 6], 1)).all()
    assert {mask.name for mask in judged} == set(masks)


def test_an_image_that_cannot_be_read_is_named(folder):
    images, masks = folder
    with open(images['3'], 'wb') as file:
        file.write(b'no image')
    with pytest.raises(UserError, match=r'3\.png'):
        fitted(images, masks)


def test_a_score_is_doubtful_if_it_is_high_and_far_above_the_median_of_the_others():
    assert are_doubtful([0.2, 0.3, 2.1, 0.4, 0.1]) == [False, False, True, False, False]
    assert not any(are_doubtful([0.1, 0.1, 1.9, 0.1, 0.1]))
    assert not any(are_doubtful([1.0, 1.1, 2.6, 1.2, 1.1]))
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
