import numpy as np
import pytest
import torch

from mmseg_cct.engine.closed_form import (
    Choice,
    Moments,
    Setting,
    choose,
    fit,
    ious_of,
    leave_one_out,
)
from mmseg_cct.engine.metrics.scores import confusion_of

RIDGE, TEMPERATURE = 0.3, 2.0


@pytest.fixture
def images():
    """Features and labels of four images, of which the last alone has class 3."""
    rng = np.random.default_rng(0)
    labels = [rng.choice([0, 1, 2, 255], 40, p=[0.4, 0.3, 0.2, 0.1]) for _ in range(4)]
    labels[3][:5] = 3
    means = [[2, 0, 0], [0, 2, 0], [0, 0, 2], [0, 0, 0]]
    features = [rng.normal(size=(40, 3)) + np.array([*means, *[[0] * 3] * 252])[i] for i in labels]
    return features, labels, [Moments.of(*image, 4) for image in zip(features, labels)]


def plain_logits(points, ids, tested):
    """Logits of a linear discriminant, from all points at once, of the classes that have some."""
    points, ids = points[ids != 255], ids[ids != 255]
    classes = np.unique(ids)
    means = np.array([points[ids == c].mean(0) for c in classes])
    centered = points - means[np.searchsorted(classes, ids)]
    inverse = np.linalg.inv(centered.T @ centered / len(points) + RIDGE * np.eye(points.shape[1]))
    logits = [
        tested @ inverse @ mean - mean @ inverse @ mean / 2 + 0.5 * np.log((ids == c).mean())
        for c, mean in zip(classes, means)
    ]
    return np.array(logits).T, classes


def test_an_image_is_judged_by_a_fit_to_the_others(images):
    features, labels, moments = images
    choice = Choice([Setting(3, RIDGE)], TEMPERATURE)
    for index, judged in enumerate(leave_one_out(features, labels, moments, choice)):
        points, ids = (
            np.concatenate(part[:index] + part[index + 1 :]) for part in (features, labels)
        )
        logits, classes = plain_logits(points, ids, features[index])
        log_p = torch.tensor(logits).log_softmax(1).numpy()
        is_known = np.isin(labels[index], classes)
        losses = -log_p[is_known, np.searchsorted(classes, labels[index][is_known])]
        assert judged.score == pytest.approx(losses.clip(max=5).mean())
        assert (judged.expected == classes[log_p.argmax(1)]).all()
        probability = torch.tensor(logits / TEMPERATURE).softmax(1).max(1).values
        assert judged.discriminant.confidence(features[index]) == pytest.approx(
            probability, rel=1e-5
        )


def test_fits_on_the_first_directions_are_averaged(images):
    features, labels, moments = images
    total = Moments(*(np.sum(part, 0) for part in zip(*moments)))
    points, ids = map(np.concatenate, (features, labels))
    expected = sum(plain_logits(points[:, :k], ids, points[:, :k])[0] for k in (2, 3)) / 2
    logits = fit(total, Choice([Setting(2, RIDGE), Setting(3, RIDGE)], 1.0))(points)
    difference = logits - expected
    assert difference == pytest.approx(np.repeat(difference[:, :1], 4, 1))  # up to a constant


def test_what_cannot_be_judged_scores_0():
    ignored, points = np.full(30, 255), np.ones((30, 2))
    for labels in ([ignored, ignored], [np.zeros(30, int)]):
        features = [points] * len(labels)
        moments = [Moments.of(points, ids, 2) for ids in labels]
        assert leave_one_out(features, labels, moments, Choice())[0].score == 0
        assert choose(features, labels, moments) == Choice()


def test_iou_counts_what_is_labelled():
    ids, predicted = np.array([0, 0, 1, 1, 255, 0]), np.array([0, 1, 1, 1, 0, 2])
    ious = ious_of(confusion_of(ids, predicted, 4))
    assert ious == pytest.approx([1 / 3, 2 / 3, np.nan, np.nan], nan_ok=True)


def test_the_settings_are_the_best_on_images_that_are_left_out():
    rng = np.random.default_rng(1)
    # two classes by a feature of little variance, behind forty that differ by image alone
    labels = [rng.integers(0, 2, 60) for _ in range(6)]
    features = [
        np.concatenate([rng.normal(size=(1, 40)).repeat(60, 0), 0.3 * ids[:, None] - 0.15], 1)
        + rng.normal(size=(60, 41)) * 0.05
        for ids in labels
    ]
    moments = [Moments.of(*image, 2) for image in zip(features, labels)]
    choice = choose(features, labels, moments)
    assert len(choice.settings) == 6 and all(s.num_features > 40 for s in choice.settings)
