import numpy as np
import pytest

from mmseg_cct.studies.windows import Window, highest_windows, keep_windows


def test_the_highest_windows_do_not_overlap():
    values = np.random.default_rng(0).random((12, 15))
    found = highest_windows(values, 3, 4)
    free = np.zeros((9, 12))  # of overlap with those before, by first pixel
    for left, top, width, height in found:
        assert (width, height) == (4, 4)
        means = [
            [values[y : y + 4, x : x + 4].mean() + free[y, x] for x in range(12)] for y in range(9)
        ]
        assert (top, left) == np.unravel_index(np.argmax(means), (9, 12))
        for y in range(9):
            for x in range(12):
                if abs(y - top) < 4 and abs(x - left) < 4:
                    free[y, x] = -np.inf


@pytest.mark.parametrize(('side', 'number', 'expected'), [(9, 5, 1), (3, 99, 2), (1, 99, 24)])
def test_there_are_as_many_windows_as_fit(side, number, expected):
    values = np.zeros((4, 6))
    found = highest_windows(values, number, side)
    assert len(found) == expected and found[0].height == min(side, 4)


def test_labels_outside_the_windows_are_ignored():
    labels = np.ones((3, 4), np.uint8)
    kept = keep_windows(labels, [Window(1, 0, 2, 2)])
    assert kept.tolist() == [[255, 1, 1, 255], [255, 1, 1, 255], [255] * 4]
