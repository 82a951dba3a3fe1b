import numpy as np
import pytest

from mmseg_cct.pseudo_labels import sureness


def test_levels_keep_the_order_of_confidences_close_to_one():
    confidence = np.array([0.0, 0.3, 0.5, 0.9, 0.99, 0.999, 0.9999, 1.0], np.float32)
    levels = sureness.levels_of(confidence)
    assert (np.diff(levels.astype(int)) > 0).all() and levels[0] == 0 and levels[-1] == 255
    for level in (1, 16, 100, 254):
        assert sureness.levels_of(np.array([sureness.confidence_of(level) + 1e-9])) == level


def test_the_least_sure_share_of_each_class_does_not_teach():
    rng = np.random.default_rng(0)
    labels = rng.integers(0, 3, (50, 60)).astype(np.uint8)
    levels = np.where(labels == 1, rng.integers(0, 30, labels.shape), rng.integers(90, 250, (1,)))
    levels = levels.astype(np.uint8)  # the third class and the first have one level each
    counts = sureness.count_levels(labels, levels, 4)
    cuts = sureness.cuts_by_share(counts, 0.2)
    mask = sureness.masks_of(labels, levels, cuts)
    for label in range(3):
        own = levels[labels == label]
        dropped = (mask[labels == label] == 255).mean()
        assert dropped <= 0.2
        # with one level more it were too many
        assert (own <= cuts[label]).mean() > 0.2
        assert sureness.kept_share(counts, cuts)[label] == pytest.approx(1 - dropped)
    assert (mask[labels == 1] == 255).mean() > 0.1
    assert np.isnan(sureness.kept_share(counts, cuts)[3])
    assert (sureness.masks_of(labels, levels, sureness.cuts_by_share(counts, 0.0)) == labels).all()


def test_the_table_of_what_teaches_by_hand():
    pixels, held_out = np.zeros((2, sureness.LEVELS), int), np.zeros((2, 2, sureness.LEVELS), int)
    pixels[0, [0, 32]] = 10, 30
    held_out[:, 0, [0, 32]] = [[4, 4], [1, 3]]  # pixels, and right ones
    table = sureness.precision_table(('a', 'b'), pixels, np.array([16, 0]), held_out)
    assert table.rows == [
        ['a', '100.0%', '75.0%', '0.5', '50.0%', '75.0%'],
        ['b', '0.0%', '–', '0', '–', '–'],
    ]
