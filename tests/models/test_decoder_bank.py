"""The bank against the plain implementation, and what it promises about gradients and memory."""

import copy

import pytest
import torch
from mmengine.structures import PixelData
from mmseg.structures import SegDataSample
from plain import (PlainBank, consistency_js, consistency_kl, consistency_mse, pairwise, weak_ce)

from mmseg_cct.errors import UserError
from mmseg_cct.models import PerturbedDecoderBank
from mmseg_cct.models.perturbations import PerturbationContext

N, D, C, H, W = 2, 12, 5, 6, 4
CLASSES = ('background', 'cat', 'dog', 'cow', 'tree')
PERTURBATIONS = dict(
    vat=dict(type='IntermediateVAT', num_decoders=2),
    dropout=dict(type='SpatialDropout', num_decoders=2),
    guided_cutout=dict(type='GuidedCutout', num_decoders=2),
    context_masking=dict(type='ContextMasking', num_decoders=1),
    object_masking=dict(type='ObjectMasking', num_decoders=1),
    feature_drop=dict(type='FeatureDrop', num_decoders=2),
    feature_noise=dict(type='FeatureNoise', num_decoders=2))
MSE = dict(type='MSEConsistency', loss_weight=1.0)


def make_bank(perturbations=PERTURBATIONS, loss_consistency=MSE, dtype=torch.float32, **kwargs):
    torch.manual_seed(0)
    kwargs = dict(dict(stride=8, compile=False, memory_budget=30_000), **kwargs)
    return PerturbedDecoderBank(
        D, C, copy.deepcopy(perturbations), dict(loss_consistency), **kwargs).to(dtype)


def make_batch(dtype=torch.float32, stride=8, num_images=N):
    torch.manual_seed(1)
    z = torch.randn(num_images, D, H, W, dtype=dtype).relu().requires_grad_()
    coarse = 2 * torch.randn(num_images, C, 3, 2, dtype=dtype)
    seg_logits = torch.nn.functional.interpolate(coarse, (H * stride, W * stride), mode='bilinear')
    samples = []
    for _ in range(num_images):
        label = torch.randint(0, C, (1, H * stride, W * stride))
        label[torch.rand(label.shape) < 0.4] = 255
        sample = SegDataSample(metainfo=dict(classes=CLASSES))
        sample.pseudo_sem_seg = PixelData(data=label)
        samples.append(sample)
    return z, seg_logits, samples


def perturbed_features(bank, z, seg_logits):
    """What `bank` draws, as K perturbed copies of z, `(K, N, D, h, w)`."""
    context = PerturbationContext(z, seg_logits, [0])
    perturbed, first = [], 0
    for perturbation in bank.perturbations.values():
        group = bank.group(slice(first, first + perturbation.num_decoders))
        first += perturbation.num_decoders
        perturbed.append(perturbation.perturb(z.flatten(2), group, context))
    return torch.cat(perturbed).unflatten(-1, z.shape[-2:])


def gradients(loss, z, modules):
    parameters = [p for module in modules for p in module.parameters()]
    return torch.autograd.grad(loss, [z, *parameters])


def plain_gradients(bank, plain, loss, z):
    """The plain decoders' gradients in the order and shapes of the bank's parameters."""
    loss.backward()
    stacked = {'proj': torch.stack([d.projection.grad[..., 0, 0] for d in plain.decoders])}
    for level in range(len(bank.up)):
        stacked[f'up.{level}.weight'] = torch.stack(
            [d.weights[level].grad[..., 0, 0] for d in plain.decoders])
        stacked[f'up.{level}.bias'] = torch.stack([d.biases[level].grad for d in plain.decoders])
    return {'z': z.grad, **stacked}


def assert_close_relative(actual, expected, tolerance):
    """Largest difference, relative to the largest value."""
    assert expected.abs().max() > 0
    assert (actual - expected).abs().max() <= tolerance * expected.abs().max()


def compare_with_plain(bank, plain_loss, tolerance=1e-5):
    """Loss and every gradient of the bank against the plain decoders on the same draws."""
    dtype = bank.proj.dtype
    z, seg_logits, samples = make_batch(dtype, stride=bank.stride)
    torch.manual_seed(2)
    loss = bank.loss((z, ), seg_logits, samples)['loss']
    loss.backward()
    actual = {'z': z.grad.clone(), **{n: p.grad for n, p in bank.named_parameters()}}

    z, seg_logits, samples = make_batch(dtype, stride=bank.stride)
    torch.manual_seed(2)
    plain = PlainBank(bank)
    predictions = plain.decode(perturbed_features(bank, z, seg_logits))
    labels = torch.cat([s.pseudo_sem_seg.data for s in samples])
    expected_loss = plain_loss(predictions, seg_logits.softmax(1), labels)
    expected = plain_gradients(bank, plain, expected_loss, z)

    assert loss.item() == pytest.approx(expected_loss.item(), rel=tolerance)
    assert actual.keys() == expected.keys()
    for name in expected:
        assert_close_relative(actual[name], expected[name], tolerance)


@pytest.mark.parametrize('name', PERTURBATIONS)
def test_each_perturbation_gives_the_plain_gradients(name):
    bank = make_bank({name: PERTURBATIONS[name]})
    compare_with_plain(bank, lambda q, p, _: consistency_mse(q, p))


@pytest.mark.parametrize('stride', [1, 2, 4, 16])
def test_every_stride_gives_the_plain_gradients(stride):
    bank = make_bank(stride=stride)
    compare_with_plain(bank, lambda q, p, _: consistency_mse(q, p))


@pytest.mark.parametrize(('kind', 'plain'), [('MSEConsistency', consistency_mse),
                                             ('KLConsistency', consistency_kl),
                                             ('JSConsistency', consistency_js)])
@pytest.mark.parametrize('threshold', [None, 0.5])
@pytest.mark.parametrize('final_activation', [False, True])
def test_each_consistency_loss_gives_the_plain_gradients(kind, plain, threshold, final_activation):
    bank = make_bank(
        loss_consistency=dict(type=kind, loss_weight=3.0, confidence_threshold=threshold),
        final_activation=final_activation)

    def expected(q, p, _):
        mask = None if threshold is None else p.amax(1) > threshold
        return 3.0 * plain(q, p, mask)

    compare_with_plain(bank, expected)


def test_all_terms_together_give_the_plain_gradients():
    bank = make_bank(
        loss_weak=dict(type='WeakCrossEntropy', loss_weight=0.4),
        loss_pairwise=dict(type='PairwiseVariance', loss_weight=2.0, num_decoders=99))
    compare_with_plain(
        bank, lambda q, p, y: consistency_mse(q, p) + 0.4 * weak_ce(q, y) + 2.0 * pairwise(q))
