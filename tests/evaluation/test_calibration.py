"""Reliability of confidence and agreement, against naive counts."""

import itertools

import numpy as np
import pytest
import torch

from mmseg_cct.evaluation.calibration import (
    CalibrationCounts,
    Reliability,
    calibration_record,
)

SCORES, PIXELS, RIGHT = np.array([0.1, 0.4, 0.6, 0.9]), np.array([4, 0, 5, 6]), [1, 0, 3, 6]
EXAMPLE = Reliability(SCORES, PIXELS, np.array(RIGHT))


def test_separation_is_the_share_of_pairs_in_order():
    right = np.repeat(SCORES, RIGHT)
    wrong = np.repeat(SCORES, PIXELS - RIGHT)
    pairs = [(a > b) + (a == b) / 2 for a, b in itertools.product(right, wrong)]
    assert EXAMPLE.separation == pytest.approx(np.mean(pairs))
    assert np.isnan(Reliability(SCORES, PIXELS, PIXELS).separation)


def test_calibration_error_is_a_mean_over_pixels():
    expected = (4 * abs(0.1 - 1 / 4) + 5 * abs(0.6 - 3 / 5) + 6 * abs(0.9 - 1)) / 15
    assert EXAMPLE.calibration_error == pytest.approx(expected)


def test_merged_bins_keep_their_pixels_and_mean_score():
    merged = EXAMPLE.merged(2)
    np.testing.assert_allclose(merged.scores, [0.1, (5 * 0.6 + 6 * 0.9) / 11])
    assert (merged.pixels.tolist(), merged.right.tolist()) == ([4, 11], [1, 9])
    assert EXAMPLE.merged(4).pixels.tolist() == [4, 5, 6]  # without the empty one


def counted(num_decoders=4):
    """Counts of a random map of which a third is ignored, and the map."""
    generator = torch.Generator().manual_seed(0)
    labels, truth = (torch.randint(0, 3, (6, 8), generator=generator) for _ in range(2))
    truth[:2] = 255
    scores = dict(
        confidence=torch.rand(6, 8, generator=generator),
        agreement=torch.randint(0, num_decoders + 1, (6, 8), generator=generator) / num_decoders,
    )
    counts = CalibrationCounts(num_decoders)
    counts.add(scores, labels, truth)
    right = (labels == truth)[2:].flatten()
    return counts, {name: values[2:].flatten() for name, values in scores.items()}, right


def test_counts_are_those_of_a_loop():
    counts, scores, right = counted()
    agreement = counts.reliability()['agreement']
    for index, score in enumerate((0.0, 0.25, 0.5, 0.75, 1.0)):
        chosen = scores['agreement'] == score
        assert agreement.scores[index] == score
        assert agreement.pixels[index] == chosen.sum()
        assert agreement.right[index] == right[chosen].sum()
    confidence = counts.reliability()['confidence']
    assert confidence.pixels.sum() == 32 and confidence.right.sum() == right.sum()
    pairs = itertools.product(scores['confidence'][right], scores['confidence'][~right])
    expected = np.mean([float(a > b) for a, b in pairs])
    assert confidence.separation == pytest.approx(expected, abs=0.01)


def test_the_record_has_ten_bins_of_confidence_at_most_and_what_is_undefined_is_none():
    counts, _, _ = counted()
    record = calibration_record(counts.reliability())
    assert len(record['confidence']['pixels']) == 10 and len(record['agreement']['pixels']) == 5
    assert sum(record['agreement']['pixels']) == sum(record['confidence']['pixels']) == 32

    alone = CalibrationCounts(0)
    truth = torch.zeros(4, 4, dtype=torch.long)
    alone.add(dict(confidence=torch.full((4, 4), 0.8)), truth, truth)  # nothing is wrong
    record = calibration_record(alone.reliability())
    assert record.keys() == {'confidence'} and record['confidence']['separation'] is None
    assert record['confidence']['calibration_error'] == pytest.approx(0.2, abs=1e-4)


def test_without_a_pixel_of_a_class_both_figures_are_none():
    counts = CalibrationCounts(0)
    void = torch.full((4, 4), 255)
    counts.add(dict(confidence=torch.full((4, 4), 0.8)), torch.zeros_like(void), void)
    assert calibration_record(counts.reliability())['confidence'] == dict(
        separation=None, calibration_error=None, scores=[], pixels=[], right=[]
    )


def test_a_confidence_of_one_counts_and_the_separation_is_finer_than_the_ten_bins():
    counts = CalibrationCounts(0)
    confidence = torch.tensor([[1.0, 0.999, 0.998, 0.5]])  # a softmax in float32 often gives 1
    truth = torch.zeros(1, 4, dtype=torch.long)
    counts.add(dict(confidence=confidence), torch.tensor([[0, 0, 1, 0]]), truth)
    record = calibration_record(counts.reliability())['confidence']
    assert (record['pixels'], record['right']) == ([1, 3], [1, 2])
    assert record['separation'] == pytest.approx(2 / 3)  # of three right ones two are surer
