import numpy as np
from hypothesis import example, given
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, arrays
from scipy.ndimage import maximum_filter, minimum_filter

from mmseg_cct.annotations.contours import trace_shapes
from mmseg_cct.annotations.drawing import draw, rasterize

NAMES = ('a', 'b', 'c', 'd')
RING = np.array([[1, 1, 1, 1], [1, 0, 2, 1], [1, 1, 1, 0]], np.uint8)  # and holes of two classes
IDS = {name: index for index, name in enumerate(NAMES)}


def drawn(shapes, labels):
    return rasterize(shapes, labels.shape[::-1], IDS, 255)[0]


@given(
    arrays(np.uint8, array_shapes(min_dims=2, max_dims=2, max_side=9), elements=st.integers(0, 3)),
    st.integers(1, 3),  # pixels that a pixel becomes, so that holes and thin parts are common
    st.sampled_from([None, 0]),
    st.booleans(),
    st.sampled_from([0, 0.3]),  # less than from an edge to a pixel's centre
)
@example(RING, 1, None, False, 0)
@example(RING, 3, 0, True, 0.3)
def test_outlines_that_hardly_move_give_back_the_mask(labels, scale, undrawn, stacked, move):
    labels = labels.repeat(scale, 0).repeat(scale, 1)
    shapes = trace_shapes(labels, NAMES, tolerance=move, undrawn=undrawn, stacked=stacked)
    expected = labels if undrawn is None else np.where(labels == undrawn, 255, labels)
    assert np.array_equal(drawn(shapes, labels), expected)


def test_simplified_outlines_are_right_to_within_a_pixel():
    labels = (np.hypot(*np.mgrid[-90:100, -80:110]) // 39).astype(np.uint8)
    exact = trace_shapes(labels, NAMES, tolerance=0)
    simple = trace_shapes(labels, NAMES)
    numbers = [
        sum(len(r) for s in shapes_of_mask for r in s.polygons)
        for shapes_of_mask in (exact, simple)
    ]
    assert numbers[1] < numbers[0] / 2
    redrawn = drawn(simple, labels)
    inside = minimum_filter(labels, 3) == maximum_filter(labels, 3)  # beside no other class
    assert np.array_equal(redrawn[inside], labels[inside])
    assert (redrawn == 255).mean() < 0.005  # gaps
    pairs = [(redrawn == index, labels == index) for index in range(4)]
    assert np.mean([(a & b).sum() / (a | b).sum() for a, b in pairs]) > 0.98


def test_small_and_thin_regions_keep_their_form_under_a_coarse_tolerance():
    labels = np.zeros((40, 40), np.uint8)
    labels[5, 3:30] = 1
    labels[range(10, 30), range(10, 30)] = 2
    labels[32:36, 32:36] = 3
    shapes = trace_shapes(labels, NAMES, tolerance=10, undrawn=0)
    assert np.array_equal(drawn(shapes, labels), np.where(labels, labels, 255))


def test_specks_go_to_their_surroundings():
    labels = np.zeros((20, 30), np.uint8)
    labels[:, 15:] = 1
    labels[4:6, 4:6] = labels[10, 20] = 2
    labels[8:12, 3:7] = 2
    cleaned = labels.copy()
    cleaned[4:6, 4:6], cleaned[10, 20] = 0, 1
    shapes = trace_shapes(labels, NAMES, tolerance=0, min_area=5)
    assert np.array_equal(drawn(shapes, labels), cleaned)
    alone = trace_shapes(labels[4:6, 4:6], NAMES, min_area=5)
    assert len(alone) == 1  # there is nothing around it


def test_ids_without_a_name_are_not_drawn():
    labels = np.array([[0, 255, 255], [0, 255, 1]], np.uint8)
    shapes = trace_shapes(labels, NAMES[:1])
    assert [(shape.label, draw(shape, (3, 2))[0].sum()) for shape in shapes] == [('a', 2)]
