import itertools

import pytest
import torch
from mmseg.registry import MODELS

from mmseg_cct.errors import UserError
from mmseg_cct.models.losses import PixelTargets

K, C, R, Q = 3, 4, 4, 5


def make_inputs(ignored=0.4, ignore_index=255):
    torch.manual_seed(0)
    seg_logits = 2 * torch.randn(K, C, R, Q, dtype=torch.float64)
    labels = torch.randint(0, C, (1, 1, R, Q))
    labels[torch.rand(labels.shape) < ignored] = ignore_index
    targets = PixelTargets(torch.rand(1, C, R, Q, dtype=torch.float64), labels, K, stride=1)
    return seg_logits, targets


def evaluate(term, seg_logits):
    distance = term.distance(seg_logits, term.labels[0])
    return term.scale * (distance * term.pixel_weight[0]).sum()


@pytest.mark.parametrize('ignore_index', [255, -1, 3])
def test_is_the_mean_over_decoders_and_labelled_pixels(ignore_index):
    seg_logits, targets = make_inputs(ignore_index=ignore_index)
    loss = MODELS.build(dict(type='WeakCrossEntropy', ignore_index=ignore_index, loss_weight=0.7))
    values = []
    for k, r, q in itertools.product(range(K), range(R), range(Q)):
        label = targets.labels[0, 0, r, q].item()
        if label != ignore_index:
            values.append(-seg_logits[k, :, r, q].softmax(0)[label].log())
    assert 0 < len(values) < K * R * Q
    term = loss.term(targets)
    torch.testing.assert_close(evaluate(term, seg_logits), sum(values) / len(values))
    assert term.loss_weight == 0.7 and term.decoders is None


def test_all_ignored_gives_zero():
    seg_logits, targets = make_inputs(ignored=1.0)
    term = MODELS.build(dict(type='WeakCrossEntropy')).term(targets)
    assert term.scale.isfinite()
    assert evaluate(term, seg_logits) == 0


def test_needs_pseudo_labels():
    _, targets = make_inputs()
    targets.labels = None
    with pytest.raises(UserError, match=r'loss_weak: .* no `pseudo_sem_seg`; expected'):
        MODELS.build(dict(type='WeakCrossEntropy')).term(targets)
