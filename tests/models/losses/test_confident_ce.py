import math

import pytest
import torch

from mmseg_cct.errors import UserError
from mmseg_cct.models.losses import ConfidentCrossEntropy

N, C, H, W = 2, 4, 3, 5


def make_inputs(seed=0):
    """Student logits, weak logits, validity and agreement."""
    torch.manual_seed(seed)
    return (
        2 * torch.randn(N, C, H, W),
        2 * torch.randn(N, C, H, W),
        torch.rand(N, 1, H, W) < 0.7,
        torch.rand(N, 1, H, W),
    )


def naive(student, weak, valid, gate, threshold, soft, normalizer):
    """Pixel by pixel."""
    total, weights = 0.0, 0.0
    for n in range(N):
        for y in range(H):
            for x in range(W):
                p = weak[n, :, y, x].softmax(0).tolist()
                log_q = student[n, :, y, x].log_softmax(0).tolist()
                if not valid[n, 0, y, x] or max(p) < threshold:
                    continue
                if soft:
                    cross_entropy = -sum(a * b for a, b in zip(p, log_q))
                else:
                    cross_entropy = -log_q[p.index(max(p))]
                total += gate[n, 0, y, x].item() * cross_entropy
                weights += gate[n, 0, y, x].item()
    return total / (valid.sum().item() if normalizer == 'valid' else max(weights, 1))


@pytest.mark.parametrize('soft', [False, True])
@pytest.mark.parametrize('normalizer', ['valid', 'counted'])
@pytest.mark.parametrize('threshold', [0.0, 0.6])
@pytest.mark.parametrize('gate', [None, dict(type='AgreementGate')])
def test_it_is_the_naive_sum(soft, normalizer, threshold, gate):
    student, weak, valid, agreement = make_inputs()
    loss = ConfidentCrossEntropy(1.0, threshold, gate, soft, normalizer)
    actual = loss(student, loss.targets(weak, valid, agreement))
    share = agreement if gate else torch.ones_like(agreement)
    expected = naive(student, weak, valid, share, threshold, soft, normalizer)
    assert actual.item() == pytest.approx(expected, rel=1e-5)


def test_by_default_all_is_valid_and_the_target_is_hard():
    student, weak, _, _ = make_inputs()
    loss = ConfidentCrossEntropy(threshold=0)
    expected = torch.nn.functional.cross_entropy(student, weak.argmax(1))
    torch.testing.assert_close(loss(student, loss.targets(weak)), expected)


def test_the_target_gets_no_gradient():
    student, weak, _, _ = make_inputs()
    for tensor in (student, weak):
        tensor.requires_grad_()
    loss = ConfidentCrossEntropy(threshold=0.5, soft=True)
    loss(student, loss.targets(weak)).backward()
    assert weak.grad is None
    assert student.grad.abs().max() > 0


@pytest.mark.parametrize('normalizer', ['valid', 'counted'])
def test_without_a_pixel_that_counts_it_is_0(normalizer):
    student, weak, valid, _ = make_inputs()
    loss = ConfidentCrossEntropy(threshold=1.0, normalizer=normalizer)
    assert loss(student, loss.targets(weak, valid)) == 0
    loss = ConfidentCrossEntropy(threshold=0.0, normalizer=normalizer)
    assert loss(student, loss.targets(weak, torch.zeros_like(valid))) == 0


@pytest.mark.parametrize('soft', [False, True])
def test_targets_are_mixed_pixel_by_pixel(soft):
    _, weak, valid, _ = make_inputs()
    boxes = torch.rand(N, 1, H, W) < 0.5
    targets = ConfidentCrossEntropy(threshold=0.6, soft=soft).targets(weak, valid)
    mixed = targets.mix(boxes)
    for name in ('target', 'weight', 'valid'):
        before, after = getattr(targets, name), getattr(mixed, name)
        for n in range(N):
            for y in range(H):
                for x in range(W):
                    source = N - 1 - n if boxes[n, 0, y, x] else n
                    assert torch.equal(after[n, :, y, x], before[source, :, y, x])


def test_an_adaptive_threshold_moves_once_in_an_iteration():
    student, weak, valid, _ = make_inputs()
    threshold = dict(type='AdaptiveThreshold', initial=0.5, momentum=0.5)
    loss = ConfidentCrossEntropy(threshold=threshold)
    targets = loss.targets(weak, valid)
    moved = loss.threshold.value.item()
    assert moved != 0.5
    confident = weak.softmax(1).amax(1, keepdim=True) >= moved
    assert torch.equal(targets.weight > 0, confident & valid)
    for _ in range(2):
        loss(student, targets)
    assert loss.threshold.value.item() == moved


def test_half_precision_logits_are_compared_in_float32():
    student, weak, valid, _ = make_inputs()
    loss = ConfidentCrossEntropy(threshold=0.5)
    half = [tensor.bfloat16() for tensor in (student, weak)]
    expected = loss(half[0].float(), loss.targets(half[1].float(), valid))
    actual = loss(half[0], loss.targets(half[1], valid))
    assert actual.dtype == torch.float32
    assert math.isclose(actual.item(), expected.item())


def test_a_gate_without_agreement_is_an_error():
    loss = ConfidentCrossEntropy(gate=dict(type='AgreementGate'))
    with pytest.raises(UserError, match=r'gate: no auxiliary decoders .* or gate=None'):
        loss.targets(make_inputs()[1])


def test_an_unknown_normaliser_is_an_error():
    with pytest.raises(UserError, match="normalizer='all': expected one of valid, counted"):
        ConfidentCrossEntropy(normalizer='all')
