import numpy as np

from mmseg_cct.studies.farthest_first import farthest_first


def test_each_point_is_the_farthest_from_all_before_it():
    points = np.random.default_rng(0).normal(size=(30, 3))
    given = points[20:]
    chosen = farthest_first(points[:20], 5, given)
    before = list(given)
    for index in chosen:
        nearest = [min(np.linalg.norm(point - other) for other in before) for point in points[:20]]
        assert index == int(np.argmax(nearest))
        before.append(points[index])


def test_it_begins_with_the_first_point_and_takes_copies_last():
    points = np.array([[0.0], [0.0], [5.0], [1.0], [5.0]])
    assert farthest_first(points, 9) == [0, 2, 3, 1, 4]
    assert farthest_first(points[:0], 3) == []
