"""Confident predictions by class, against a loop over the pixels."""

import numpy as np
import pytest
import torch

from mmseg_cct.evaluation.pseudo_label_counts import PseudoLabelCounts


def test_pseudo_labels_by_class_are_those_of_a_loop():
    generator = torch.Generator().manual_seed(1)
    labels, truth = (torch.randint(0, 3, (6, 8), generator=generator) for _ in range(2))
    truth[0] = 255
    confidence = torch.rand(6, 8, generator=generator)
    counts = PseudoLabelCounts(4, threshold=0.4)  # the last class does not occur
    counts.add(confidence, labels, truth)
    record = counts.record('abcd')
    pixels = [
        (int(t), int(label))
        for t, label, c in zip(truth.flatten(), labels.flatten(), confidence.flatten())
        if t != 255 and c >= 0.4
    ]
    assert record['used'] == pytest.approx(len(pixels) / 40)
    assert record['right'] == pytest.approx(np.mean([t == label for t, label in pixels]))
    for index, name in enumerate('abc'):
        of_class = [t == label for t, label in pixels if t == index]
        called = [t == label for t, label in pixels if label == index]
        row = record['by_class'][name]
        assert row['used'] == pytest.approx(len(of_class) / int((truth == index).sum()))
        assert row['right'] == pytest.approx(np.mean(of_class))
        assert row['precise'] == pytest.approx(np.mean(called))
    assert record['by_class']['d'] == dict(used=None, right=None, precise=None)
