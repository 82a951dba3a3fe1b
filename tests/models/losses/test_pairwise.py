import pytest
import torch
from mmseg.registry import MODELS

from mmseg_cct.models.losses import PixelTargets
from mmseg_cct.models.losses.pairwise import variance

K, C, R, Q = 5, 3, 4, 2


def targets(num_decoders=K):
    return PixelTargets(torch.rand(1, C, R, Q, dtype=torch.float64), None, num_decoders, stride=1)


def naive(seg_logits):
    """(1/K) Σ_k ‖q_k - q̄‖², the mean over pixels."""
    total, pixels = 0, seg_logits.softmax(1).flatten(2).unbind(2)
    for q in pixels:
        mean = sum(q) / len(q)
        total += sum(((own - mean) ** 2).sum() for own in q) / len(q)
    return total / len(pixels)


@pytest.mark.parametrize('num_decoders', [2, 3, 99])
def test_is_the_variance_of_the_chosen_predictions(num_decoders):
    torch.manual_seed(0)
    seg_logits = torch.randn(K, C, R, Q, dtype=torch.float64)
    loss = MODELS.build(dict(type='PairwiseVariance', num_decoders=num_decoders, loss_weight=2.0))
    term = loss.term(targets())
    assert len(term.decoders) == min(num_decoders, K) == len(set(term.decoders.tolist()))
    chosen = seg_logits[term.decoders]
    expected = naive(chosen)
    assert expected > 0 and term.loss_weight == 2.0
    actual = term.scale * (term.distance(chosen, None) * term.pixel_weight[0]).sum()
    torch.testing.assert_close(actual, expected)


def test_subset_is_drawn_anew_and_uniformly():
    torch.manual_seed(0)
    loss = MODELS.build(dict(type='PairwiseVariance', num_decoders=8))
    counts = torch.zeros(30)
    for _ in range(600):
        counts[loss.term(targets(30)).decoders] += 1
    expected = 600 * 8 / 30
    assert (counts - expected).abs().max() < 5 * (expected * (1 - 8 / 30)) ** 0.5


def test_agreement_and_a_single_decoder_give_zero():
    seg_logits = torch.randn(1, C, R, Q, dtype=torch.float64)
    target = torch.zeros(C, R, Q)
    for same in (seg_logits, seg_logits.expand(K, -1, -1, -1)):
        zero = torch.zeros(1, R, Q, dtype=torch.float64)
        torch.testing.assert_close(variance(same, target), zero)
