"""The legend as a picture."""

import numpy as np
import pytest

from mmseg_cct.visualization.label_maps import class_legend, legend_picture

COLOURS = [(200, 0, 0), (0, 200, 0), (0, 0, 200)]


@pytest.mark.parametrize('width', [24, 90, 640])
def test_every_colour_is_within_the_legend(width):
    legend = legend_picture(['a', 'a long name ' * 9, 'caf\udce9\n'], COLOURS, width)
    assert legend.shape[1:] == (width, 3) and legend.dtype == np.uint8
    assert (legend[[0, -1]] == 255).all() and (legend[:, -1] == 255).all()
    for colour in COLOURS:
        rows, columns = np.nonzero((legend == colour).all(-1))
        assert len(rows) == np.ptp(rows) ** 2 + 2 * np.ptp(rows) + 1  # a whole square
        assert np.ptp(rows) == np.ptp(columns)


def test_names_stand_side_by_side_where_there_is_room():
    heights = [len(legend_picture(['a', 'b', 'c'], COLOURS, width)) for width in (40, 640)]
    assert heights[0] > heights[1]


def test_ignored_pixels_are_in_the_legend_where_asked():
    assert [patch.get_label() for patch in class_legend(['a'], COLOURS, True)] == ['a', 'ignored']
    assert [patch.get_label() for patch in class_legend(['a'], COLOURS)] == ['a']
