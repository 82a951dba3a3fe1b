import numpy as np

from mmseg_cct.pseudo_labels.thresholds import Thresholds, labels_from_maps

DEFAULT = Thresholds()
# two classes on 2×3 pixels
MAPS = np.array([[[0.0, 0.04, 0.06], [0.31, 0.9, 0.3]],
                 [[0.01, 0.02, 0.29], [0.2, 1.0, 0.1]]], np.float32)  # fmt: skip


def test_labels_of_a_hand_made_map():
    for background, low in ((0, 0), (None, 255)):
        labels = labels_from_maps(MAPS, (7, 3), background, DEFAULT)
        assert labels.tolist() == [[low, low, 255], [7, 3, 255]]
        assert labels.dtype == np.uint8


def test_an_image_without_classes_is_all_background():
    maps = np.zeros((0, 2, 3), np.float32)
    assert (labels_from_maps(maps, (), 4, DEFAULT) == 4).all()
    assert (labels_from_maps(maps, (), None, DEFAULT) == 255).all()


def test_a_score_at_a_threshold_is_between_the_two():
    maps = np.array([[[0.05, 0.30]]], np.float32)
    assert labels_from_maps(maps, (7,), 0, DEFAULT).tolist() == [[255, 255]]
