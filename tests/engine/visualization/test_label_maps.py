"""The legend as a picture."""

import numpy as np
import pytest

from mmseg_cct.engine.visualization.label_maps import blend, class_legend, legend_picture

COLOURS = [(200, 0, 0), (0, 200, 0), (0, 0, 200)]


@pytest.mark.parametrize('width', [40, 640])
def test_every_colour_is_within_the_legend(width):
    legend = legend_picture(['a', 'a long name ' * 9, 'b'], COLOURS, width)
    assert legend.shape[1:] == (width, 3) and legend.dtype == np.uint8
    assert (legend[[0, -1]] == 255).all()
    for colour in COLOURS:
        rows, columns = np.nonzero((legend == colour).all(-1))
        assert len(rows) == np.ptp(rows) ** 2 + 2 * np.ptp(rows) + 1  # a whole square
        assert np.ptp(rows) == np.ptp(columns)


@pytest.mark.parametrize('name', ['background', 'unlabelled'])
def test_the_background_keeps_the_photos_pixels(name):
    image, labels = np.full((1, 2, 3), 100, np.uint8), np.uint8([[0, 1]])
    assert blend(image, labels, [name, 'car'], COLOURS, 0.5).tolist() == [
        [[100] * 3, [50, 150, 50]]
    ]
    assert blend(image, labels, ['sky', 'car'], COLOURS, 1).tolist() == [[[200, 0, 0], [0, 200, 0]]]


def test_ignored_pixels_are_in_the_legend():
    assert [patch.get_label() for patch in class_legend(['a'], COLOURS)] == ['a', 'ignored']
