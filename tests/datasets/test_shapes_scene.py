"""Drawn scenes: a pure function of their number, every class in a few of them."""

import numpy as np
import pytest

from mmseg_cct.datasets import ShapesDataset
from mmseg_cct.datasets.shapes_scene import _draw_scene as draw_again
from mmseg_cct.datasets.shapes_scene import _drawer, draw_scene

CLASSES = ShapesDataset.METAINFO['classes']


def test_a_scene_depends_on_seed_number_and_size_alone():
    np.random.seed(1)
    before = np.random.get_state()[1].copy()
    image, seg_map = draw_again(3, 5, 48)
    assert image.shape == (48, 48, 3) and seg_map.shape == (48, 48)
    assert image.dtype == seg_map.dtype == np.uint8
    np.testing.assert_array_equal(before, np.random.get_state()[1])
    draw_again(3, 6, 48)
    np.random.seed(2)
    for first, again in zip((image, seg_map), draw_again(3, 5, 48)):
        np.testing.assert_array_equal(first, again)
    for other in [(4, 5, 48), (3, 6, 48)]:
        assert (draw_again(*other)[0] != image).mean() > 0.5


@pytest.mark.parametrize('size', [48, 300])
def test_scenes_are_kept_up_to_64_mib(size):
    image, seg_map = draw_scene(0, 0, size)
    assert draw_scene(0, 0, size)[0] is image
    kept, scene = _drawer(size).cache_info().maxsize, image.nbytes + seg_map.nbytes
    assert 2**26 - scene < kept * scene <= 2**26


@pytest.mark.parametrize('start', [0, 17])
def test_a_dozen_scenes_show_every_class(start):
    seg_maps = [draw_scene(0, number, 64)[1] for number in range(start, start + 12)]
    assert set(np.unique(seg_maps)) == set(range(len(CLASSES)))
