import math

import pytest
import torch
from mmseg.registry import MODELS
from plain import consistency_js, consistency_kl, consistency_mse, pairwise, weak_ce

from mmseg_cct.models.losses import PixelTargets

N, C, H, W, K = 2, 4, 5, 6, 3


def make_inputs():
    """Auxiliary logits (K, N, C, H, W), main logits, pseudo labels and a mask of padding."""
    torch.manual_seed(0)
    auxiliary = 2 * torch.randn(K, N, C, H, W, dtype=torch.float64)
    main = 2 * torch.randn(N, C, H, W, dtype=torch.float64)
    labels = torch.randint(0, C, (N, 1, H, W))
    labels[torch.rand(labels.shape) < 0.4] = 255
    valid = torch.zeros(N, 1, H, W, dtype=torch.bool)
    valid[0, :, :3, :4] = valid[1, :, :, :2] = True
    return auxiliary, main, labels, valid


def value_of(term, auxiliary, main):
    """scale · Σ pixel_weight · distance, as the bank sums it up."""
    target = main.softmax(1) if term.labels is None else term.labels
    chosen = auxiliary if term.decoders is None else auxiliary[term.decoders]
    target, weight = (values.transpose(0, 1).flatten(2) for values in (target, term.pixel_weight))
    distance = term.distance(chosen.transpose(1, 2).flatten(3), target)
    return term.scale * (distance * weight).sum()


def at_pixels(auxiliary, main, labels, chosen):
    """The chosen pixels side by side, as the only pixels of one image."""
    chosen = chosen.squeeze(1)
    return (
        auxiliary.transpose(1, 2)[:, :, chosen][:, None, ..., None],
        main.transpose(0, 1)[:, chosen][None, ..., None].softmax(1),
        labels.squeeze(1)[chosen].view(1, -1, 1),
    )


def confident(distance_name, threshold):
    return lambda q, p, _: distance_name(q, p, p.amax(1) > threshold)


LOSSES = {
    'mse': (dict(type='MSEConsistency'), lambda q, p, _: consistency_mse(q, p)),
    'kl': (dict(type='KLConsistency'), lambda q, p, _: consistency_kl(q, p)),
    'js': (dict(type='JSConsistency'), lambda q, p, _: consistency_js(q, p)),
    'confident mse': (
        dict(type='MSEConsistency', confidence_threshold=0.8),
        confident(consistency_mse, 0.8),
    ),
    'weak': (dict(type='WeakCrossEntropy'), lambda q, _, labels: weak_ce(q, labels)),
    'pairwise': (dict(type='PairwiseVariance', num_decoders=K), lambda q, *_: pairwise(q)),
}


@pytest.mark.parametrize('name', LOSSES)
@pytest.mark.parametrize('padded', [False, True])
def test_a_term_is_its_equation_at_the_valid_pixels(name, padded):
    auxiliary, main, labels, valid = make_inputs()
    config, equation = LOSSES[name]
    loss = MODELS.build(dict(config, loss_weight=7.0))
    loss.loss_weight = 0.7  # as a ramp does
    term = loss.term(PixelTargets(main, labels, K, stride=1, valid=valid if padded else None))
    chosen = valid if padded else torch.ones_like(valid)
    expected = equation(*at_pixels(auxiliary, main, labels, chosen))
    assert expected > 0 and term.loss_weight == 0.7
    torch.testing.assert_close(value_of(term, auxiliary, main), expected)


@pytest.mark.parametrize('distance_name', ['MSEConsistency', 'KLConsistency', 'JSConsistency'])
def test_certain_targets_and_underflowing_predictions_stay_finite(distance_name):
    # p is 0 in all classes but one; q underflows to 0 in some
    seg_logits = torch.tensor([[0.0, 1, 2, 3], [200, 0, 0, -200], [-800, 0, 800, 0]])
    seg_logits = seg_logits.view(3, C, 1, 1).requires_grad_()
    distance = type(MODELS.build(dict(type=distance_name))).distance
    for target in torch.eye(C).view(C, C, 1, 1):
        distances = distance(seg_logits, target)
        (gradient,) = torch.autograd.grad(distances.sum(), seg_logits)
        assert distances.isfinite().all() and gradient.isfinite().all()
        if distance_name == 'JSConsistency':  # bounded by log 2
            assert distances.max() <= math.log(2) / C + 1e-6


@pytest.mark.parametrize('num_classes, scale', [(7, 1 / 3), (150, 1)])
def test_few_classes_count_in_proportion(num_classes, scale):
    seg_logits = torch.randn(2, num_classes, 4, 5)
    probabilities = torch.randn(2, num_classes, 4, 5).softmax(1)
    plain = MODELS.build(dict(type='MSEConsistency'))(seg_logits, probabilities)
    scaled = MODELS.build(dict(type='MSEConsistency', reference_classes=21))
    torch.testing.assert_close(scaled(seg_logits, probabilities), scale * plain)


def test_a_class_of_less_weight_leaves_the_others_theirs():
    auxiliary, main, labels, valid = make_inputs()
    loss, weight = MODELS.build(dict(type='WeakCrossEntropy')), [1.0, 0.0, 0.25, 0.5]
    loss.class_weight = torch.tensor(weight)
    term = loss.term(PixelTargets(main, labels, K, stride=1, valid=valid))
    total, number = 0.0, 0
    for n, _, y, x in ((labels != 255) & valid).nonzero().tolist():
        label = labels[n, 0, y, x].item()
        total -= weight[label] * auxiliary[:, n, :, y, x].log_softmax(1)[:, label].mean()
        number += 1
    torch.testing.assert_close(value_of(term, auxiliary, main), total / number)
    loss.class_weight = torch.ones(C)
    uniform = loss.term(PixelTargets(main, labels, K, stride=1, valid=valid))
    loss.class_weight = None
    plain = loss.term(PixelTargets(main, labels, K, stride=1, valid=valid))
    assert torch.equal(uniform.pixel_weight, plain.pixel_weight)


def test_pairs_are_drawn_anew_and_uniformly():
    torch.manual_seed(0)
    loss = MODELS.build(dict(type='PairwiseVariance', num_decoders=8))
    targets = PixelTargets(torch.rand(1, C, H, W), None, 30, stride=1)
    counts = torch.zeros(30)
    for _ in range(200):
        decoders = loss.term(targets).decoders
        assert len(decoders) == len(decoders.unique()) == 8
        counts[decoders] += 1
    expected = 200 * 8 / 30
    assert (counts - expected).abs().max() < 5 * (expected * (1 - 8 / 30)) ** 0.5
