"""L_u, L_w and L_pw of small predictions against loops over decoders and pixels."""

import itertools
import math

import pytest
import torch
from mmseg.registry import MODELS

from mmseg_cct.errors import UserError
from mmseg_cct.models.losses import PixelTargets
from mmseg_cct.models.losses.auxiliary import js_distance, kl_distance, mse_distance

K, C, R, Q = 3, 4, 4, 5


def evaluate(term, seg_logits, target):
    """scale · Σ pixel_weight · distance, as the bank sums it up."""
    return term.scale * (term.distance(seg_logits, target) * term.pixel_weight[0]).sum()


def naive_distance(kind, q, p):
    """One pixel of one decoder: lists of C probabilities."""
    if kind == 'MSEConsistency':
        return sum((a - b) ** 2 for a, b in zip(q, p)) / len(p)
    if kind == 'KLConsistency':
        return sum(b * math.log(b / a) for a, b in zip(q, p) if b > 0) / len(p)
    total = 0
    for a, b in zip(q, p):
        m = (a + b) / 2
        total += sum(x * math.log(x / m) / 2 for x in (a, b) if x > 0)
    return total / len(p)


def naive(kind, seg_logits, probabilities, threshold=None):
    q = seg_logits.softmax(1).flatten(2)
    p = probabilities.flatten(1)
    values = []
    for k in range(q.shape[0]):
        for pixel in range(q.shape[2]):
            target = p[:, pixel].tolist()
            if threshold is None or max(target) > threshold:
                values.append(naive_distance(kind, q[k, :, pixel].tolist(), target))
    return sum(values) / len(values) if values else 0.0


def targets_of(probabilities):
    """One image of R×Q pixels on which the main decoder predicts (C, R, Q) probabilities."""
    return PixelTargets(probabilities.log()[None], None, K, stride=1)


def make_inputs(dtype=torch.float64, seed=0):
    torch.manual_seed(seed)
    seg_logits = 2 * torch.randn(K, C, R, Q, dtype=dtype)
    probabilities = (2 * torch.randn(C, R, Q, dtype=dtype)).softmax(0)
    return seg_logits, probabilities


each_kind = pytest.mark.parametrize('kind', ['MSEConsistency', 'KLConsistency', 'JSConsistency'])
each_distance = pytest.mark.parametrize('distance', [mse_distance, kl_distance, js_distance])


@each_kind
@pytest.mark.parametrize('threshold', [None, 0.5, 0.8])
def test_is_the_mean_over_decoders_counted_pixels_and_classes(kind, threshold):
    seg_logits, probabilities = make_inputs()
    loss = MODELS.build(dict(type=kind, confidence_threshold=threshold, loss_weight=7.0))
    term = loss.term(targets_of(probabilities))
    expected = naive(kind, seg_logits, probabilities, threshold)
    assert expected > 0
    assert evaluate(term, seg_logits, probabilities).item() == pytest.approx(expected, rel=1e-9)
    assert term.loss_weight == 7.0 and term.decoders is None and term.labels is None


@each_kind
def test_only_a_pixel_above_the_threshold_counts(kind):
    seg_logits, probabilities = make_inputs()
    loss = MODELS.build(dict(type=kind, confidence_threshold=1.0))
    assert loss.loss_weight == 30.0  # the paper's
    loss.loss_weight = 1.5  # as a ramp does
    term = loss.term(targets_of(probabilities))
    assert term.scale.isfinite() and term.loss_weight == 1.5
    assert evaluate(term, seg_logits, probabilities) == 0
    at_threshold = torch.tensor([0.5, 0.5, 0, 0]).view(C, 1, 1)
    loss.confidence_threshold = 0.5
    assert loss.term(targets_of(at_threshold)).pixel_weight.sum() == 0


@each_kind
@pytest.mark.parametrize('dtype', [torch.float32, torch.float64])
def test_certain_targets_and_underflowing_predictions_stay_finite(kind, dtype):
    # p is 0 in all classes but one; q underflows to 0 in some
    seg_logits = torch.tensor([[0.0, 1, 2, 3], [200, 0, 0, -200], [-800, 0, 800, 0]], dtype=dtype)
    seg_logits = seg_logits.view(3, C, 1, 1).requires_grad_()
    for label in range(C):
        target = torch.eye(C, dtype=dtype)[label].view(C, 1, 1)
        loss = MODELS.build(dict(type=kind))
        distances = type(loss).distance(seg_logits, target)
        (gradient,) = torch.autograd.grad(distances.sum(), seg_logits)
        assert distances.isfinite().all() and gradient.isfinite().all()
        if kind == 'JSConsistency':  # bounded by log 2
            assert distances.max() <= math.log(2) / C + 1e-6
    target = torch.eye(C, dtype=dtype)[0].view(C, 1, 1)
    if kind != 'KLConsistency':  # whose naive log q needs q > 0
        for k in range(3):
            expected = naive(kind, seg_logits[k : k + 1].detach(), target)
            assert distances.shape == (3, 1, 1)
            actual = type(loss).distance(seg_logits[k : k + 1], target).item()
            assert actual == pytest.approx(expected, rel=1e-5, abs=1e-7)


@each_kind
def test_the_normaliser_valid_divides_by_all_pixels(kind):
    seg_logits, probabilities = make_inputs()
    values = []
    for normalizer in ('counted', 'valid'):
        loss = MODELS.build(dict(type=kind, confidence_threshold=0.5, normalizer=normalizer))
        values.append(evaluate(loss.term(targets_of(probabilities)), seg_logits, probabilities))
    share = (probabilities.amax(0) > 0.5).double().mean()
    assert 0 < share < 1
    torch.testing.assert_close(values[1], share * values[0])


@pytest.mark.parametrize('num_classes, scale', [(2, 2 / 21), (7, 1 / 3), (21, 1), (150, 1)])
def test_few_classes_count_in_proportion(num_classes, scale):
    seg_logits = torch.randn(2, num_classes, 4, 5)
    probabilities = torch.randn(2, num_classes, 4, 5).softmax(1)
    plain = MODELS.build(dict(type='MSEConsistency'))(seg_logits, probabilities)
    scaled = MODELS.build(dict(type='MSEConsistency', reference_classes=21))
    torch.testing.assert_close(scaled(seg_logits, probabilities), scale * plain)


def labelled_inputs(ignored=0.4, ignore_index=255):
    torch.manual_seed(0)
    seg_logits = 2 * torch.randn(K, C, R, Q, dtype=torch.float64)
    labels = torch.randint(0, C, (1, 1, R, Q))
    labels[torch.rand(labels.shape) < ignored] = ignore_index
    targets = PixelTargets(torch.rand(1, C, R, Q, dtype=torch.float64), labels, K, stride=1)
    return seg_logits, targets


@pytest.mark.parametrize('ignore_index', [255, -1, 3])
def test_weak_ce_is_the_mean_over_decoders_and_labelled_pixels(ignore_index):
    seg_logits, targets = labelled_inputs(ignore_index=ignore_index)
    loss = MODELS.build(dict(type='WeakCrossEntropy', ignore_index=ignore_index, loss_weight=0.7))
    values = []
    for k, r, q in itertools.product(range(K), range(R), range(Q)):
        label = targets.labels[0, 0, r, q].item()
        if label != ignore_index:
            values.append(-seg_logits[k, :, r, q].softmax(0)[label].log())
    assert 0 < len(values) < K * R * Q
    term = loss.term(targets)
    torch.testing.assert_close(
        evaluate(term, seg_logits, term.labels[0]), sum(values) / len(values)
    )
    assert term.loss_weight == 0.7 and term.decoders is None


def test_weak_ce_of_ignored_pixels_is_zero():
    seg_logits, targets = labelled_inputs(ignored=1.0)
    term = MODELS.build(dict(type='WeakCrossEntropy')).term(targets)
    assert term.scale.isfinite()
    assert evaluate(term, seg_logits, term.labels[0]) == 0


def test_weak_ce_needs_pseudo_labels():
    _, targets = labelled_inputs()
    targets.labels = None
    with pytest.raises(UserError, match=r'loss_weak: .* no `pseudo_sem_seg`; expected'):
        MODELS.build(dict(type='WeakCrossEntropy')).term(targets)


def targets_of_pairs(num_decoders=K):
    return PixelTargets(torch.rand(1, C, R, Q, dtype=torch.float64), None, num_decoders, stride=1)


def naive_variance(seg_logits):
    """(1/K) Σ_k ‖q_k - q̄‖², the mean over pixels."""
    total, pixels = 0, seg_logits.softmax(1).flatten(2).unbind(2)
    for q in pixels:
        mean = sum(q) / len(q)
        total += sum(((own - mean) ** 2).sum() for own in q) / len(q)
    return total / len(pixels)


@pytest.mark.parametrize('num_decoders', [2, 3, 99])
def test_pairwise_is_the_variance_of_the_chosen_predictions(num_decoders):
    torch.manual_seed(0)
    seg_logits = torch.randn(5, C, R, Q, dtype=torch.float64)
    loss = MODELS.build(dict(type='PairwiseVariance', num_decoders=num_decoders, loss_weight=2.0))
    term = loss.term(targets_of_pairs(5))
    assert len(term.decoders) == min(num_decoders, 5) == len(set(term.decoders.tolist()))
    chosen = seg_logits[term.decoders]
    expected = naive_variance(chosen)
    assert expected > 0 and term.loss_weight == 2.0
    torch.testing.assert_close(evaluate(term, chosen, None), expected)


def test_pairs_are_drawn_anew_and_uniformly():
    torch.manual_seed(0)
    loss = MODELS.build(dict(type='PairwiseVariance', num_decoders=8))
    counts = torch.zeros(30)
    for _ in range(600):
        counts[loss.term(targets_of_pairs(30)).decoders] += 1
    expected = 600 * 8 / 30
    assert (counts - expected).abs().max() < 5 * (expected * (1 - 8 / 30)) ** 0.5
