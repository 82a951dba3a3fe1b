import numpy as np
import pytest

from mmseg_cct.engine.visualization.label_maps import blend

COLOURS = [(200, 0, 0), (0, 200, 0), (0, 0, 200)]


@pytest.mark.parametrize('name', ['background', 'unlabelled'])
def test_the_background_keeps_the_photos_pixels(name):
    image, labels = np.full((1, 2, 3), 100, np.uint8), np.uint8([[0, 1]])
    assert blend(image, labels, [name, 'car'], COLOURS, 0.5).tolist() == [
        [[100] * 3, [50, 150, 50]]
    ]
    assert blend(image, labels, ['sky', 'car'], COLOURS, 1).tolist() == [[[200, 0, 0], [0, 200, 0]]]
