import pytest
import torch
from mmseg.registry import MODELS

from mmseg_cct.models.losses import PixelTargets

N, C, H, W, K = 2, 4, 5, 6, 3


@pytest.fixture
def seg_logits():
    return 2 * torch.randn(N, C, H, W, generator=torch.Generator().manual_seed(0))


@pytest.fixture
def valid():
    mask = torch.zeros(N, 1, H, W, dtype=torch.bool)
    mask[0, :, :3, :4] = mask[1, :, :, :2] = True
    return mask


def targets_of(seg_logits, valid, labels=None):
    return PixelTargets(seg_logits, labels, K, stride=1, valid=valid)


def value_of(term, auxiliary, seg_logits):
    """The term on auxiliary logits (K, N, C, H, W), as the bank sums it up."""
    probabilities = seg_logits.softmax(1).transpose(0, 1).flatten(2)
    target = probabilities if term.labels is None else term.labels.transpose(0, 1).flatten(2)
    chosen = auxiliary if term.decoders is None else auxiliary[term.decoders]
    distance = term.distance(chosen.transpose(1, 2).flatten(3), target)
    weight = term.pixel_weight.transpose(0, 1).flatten(2)
    return (term.scale * (distance * weight).sum()).item()


LOSSES = {
    'mse': dict(type='MSEConsistency'),
    'confident kl': dict(type='KLConsistency', confidence_threshold=0.5),
    'pairwise': dict(type='PairwiseVariance', num_decoders=K),
    'weak': dict(type='WeakCrossEntropy'),
}


@pytest.mark.parametrize('name', LOSSES)
def test_a_term_is_the_mean_over_the_valid_pixels_alone(name, seg_logits, valid):
    torch.manual_seed(1)
    auxiliary = torch.randn(K, N, C, H, W)
    labels = torch.randint(0, C, (N, 1, H, W))
    term_of = MODELS.build(LOSSES[name]).term

    # the valid pixels side by side, as the only pixels of one image
    chosen = valid.squeeze(1)
    alone = seg_logits.transpose(0, 1)[:, chosen][None, ..., None]
    auxiliary_alone = auxiliary.transpose(1, 2)[:, :, chosen][:, None, ..., None]
    labels_alone = labels[valid].view(1, 1, -1, 1)
    expected = value_of(term_of(targets_of(alone, None, labels_alone)), auxiliary_alone, alone)

    actual = value_of(term_of(targets_of(seg_logits, valid, labels)), auxiliary, seg_logits)
    assert actual == pytest.approx(expected, rel=1e-5) and expected > 0
    everywhere = value_of(term_of(targets_of(seg_logits, None, labels)), auxiliary, seg_logits)
    assert everywhere != pytest.approx(actual, rel=1e-3)


@pytest.mark.parametrize('name', LOSSES)
def test_without_padding_every_bit_stays(name, seg_logits):
    labels = torch.randint(0, C, (N, 1, H, W))
    terms = []
    for valid in (None, torch.ones(N, 1, H, W, dtype=torch.bool)):
        torch.manual_seed(0)
        terms.append(MODELS.build(LOSSES[name]).term(targets_of(seg_logits, valid, labels)))
    assert torch.equal(terms[0].pixel_weight, terms[1].pixel_weight)
    assert torch.equal(terms[0].scale, terms[1].scale)
