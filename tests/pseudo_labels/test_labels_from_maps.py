import numpy as np
import pytest

from mmseg_cct.pseudo_labels.labels_from_maps import (
    DenseCRF,
    Thresholds,
    labels_from_maps,
    refined_labels,
)

SIZE = (40, 60)
DEFAULT = Thresholds()


@pytest.fixture
def crf():
    pytest.importorskip('pydensecrf', reason='the CRF is its (extra `weak`)')
    return DenseCRF()


@pytest.fixture
def scene():
    """A red object on the left of a blue ground, and a map that covers half of the object."""
    image = np.zeros((*SIZE, 3), np.uint8)
    image[..., 2] = 200
    image[:, :30] = (200, 20, 20)
    maps = np.zeros((1, *SIZE), np.float32)
    maps[:, :, :22] = 0.2
    maps[:, :, :18] = 1.0
    return image, maps


def test_labels_grow_to_the_edge_of_the_object(scene, crf):
    image, maps = scene
    before = labels_from_maps(maps, (3,), 0, DEFAULT)
    assert (before[:, 18:22] == 255).all() and (before[:, 22:] == 0).all()
    for background, rest_label in ((0, 0), (None, 255)):
        after = refined_labels(image, maps, (3,), background, DEFAULT, crf)
        assert (after[:, :30] == 3).all() and (after[:, 30:] == rest_label).all()


def test_between_the_two_cuts_a_pixel_is_ignored(crf):
    # A grey image: the CRF has no edge to go to, and 0.2 is object at θ_bg, rest at θ_fg.
    maps = np.full((1, 20, 20), 0.2, np.float32)
    after = refined_labels(np.full((20, 20, 3), 90, np.uint8), maps, (3,), 0, DEFAULT, crf)
    assert (after == 255).all()


@pytest.mark.parametrize(('background', 'rest_label'), [(6, 6), (None, 255)])
def test_an_image_without_classes_is_all_background(crf, background, rest_label):
    image = np.random.default_rng(0).integers(0, 256, (*SIZE, 3), np.uint8)
    arguments = np.zeros((0, *SIZE), np.float32), (), background, DEFAULT
    assert (labels_from_maps(*arguments) == rest_label).all()
    assert (refined_labels(image, *arguments, crf) == rest_label).all()


# two classes on 2×3 pixels
MAPS = np.array([[[0.0, 0.04, 0.06], [0.31, 0.9, 0.3]],
                 [[0.01, 0.02, 0.29], [0.2, 1.0, 0.1]]], np.float32)  # fmt: skip


def test_labels_of_a_hand_made_map():
    for background, low in ((0, 0), (None, 255)):
        labels = labels_from_maps(MAPS, (7, 3), background, DEFAULT)
        assert labels.tolist() == [[low, low, 255], [7, 3, 255]]
        assert labels.dtype == np.uint8
