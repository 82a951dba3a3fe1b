"""A bank of all perturbations, its batch, and its loss with gradients."""

import copy
import os
import shutil
import subprocess
import sys

import pytest
import torch
from mmengine.structures import PixelData
from mmseg.structures import SegDataSample
from plain import PlainBank

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
    feature_noise=dict(type='FeatureNoise', num_decoders=2),
)


needs_compiler = pytest.mark.skipif(
    not (shutil.which('g++') or shutil.which('clang++')), reason='no C++ compiler'
)
MSE = dict(type='MSEConsistency', loss_weight=1.0)


def make_bank(perturbations=PERTURBATIONS, loss_consistency=MSE, dtype=torch.float32, **kwargs):
    torch.manual_seed(2**32 - 1)  # the bank draws its weights with the seed after it: 0
    # random kernels: the identity starts on the kink of a ReLU, where gradients are no comparison
    defaults = dict(stride=8, compile=False, memory_budget=30_000, kernel_init='kaiming')
    settings = copy.deepcopy(perturbations), dict(loss_consistency)
    return PerturbedDecoderBank(D, C, *settings, **dict(defaults, **kwargs)).to(dtype)


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
        perturbed.append(perturbation.perturb(group, context))
    return torch.cat(perturbed).unflatten(-1, z.shape[-2:])


def gradients(loss, z, modules):
    return torch.autograd.grad(loss, [z, *(p for each in modules for p in each.parameters())])


def assert_close_relative(actual, expected, tolerance):
    """Largest difference, relative to the largest value."""
    assert expected.abs().max() > 0
    assert (actual - expected).abs().max() <= tolerance * expected.abs().max()


ALL_TERMS = dict(
    loss_weak=dict(type='WeakCrossEntropy', loss_weight=0.4),
    loss_pairwise=dict(type='PairwiseVariance', loss_weight=2.0, num_decoders=99),
)
OBJECT_MASKING = dict(object_masking=dict(type='ObjectMasking', num_decoders=2))


def run_loss(bank, batch=None, seed=2):
    """The losses of one iteration, its draws under a seed."""
    z, seg_logits, samples = batch or make_batch(bank.proj.dtype, stride=bank.stride)
    torch.manual_seed(seed)
    return bank.loss((z,), seg_logits, samples)


def loss_and_gradients(bank, batch=None, seed=2):
    batch = batch or make_batch(bank.proj.dtype, stride=bank.stride)
    loss = run_loss(bank, batch, seed)['loss']
    return loss.detach(), gradients(loss, batch[0], [bank])


def assert_same_results(actual, expected, tolerance=1e-5):
    torch.testing.assert_close(actual[0], expected[0], rtol=tolerance, atol=0)
    for a, e in zip(actual[1], expected[1]):
        assert a.dtype == e.dtype and a.shape == e.shape
        assert_close_relative(a, e, tolerance)


def plain_predictions(bank, batch, seed=2):
    z, seg_logits, _ = batch
    torch.manual_seed(seed)
    return PlainBank(bank).decode(perturbed_features(bank, z, seg_logits))


MASKED = dict(type='MSEConsistency', confidence_threshold=0.4)


def with_masks(samples, valid):
    for sample, mask in zip(samples, valid):
        sample.valid_mask = PixelData(data=mask)
    return samples


def run_compiling(script, *args, **changes):
    """Runs a script in a process of its own, where torch compiles."""
    # With ATEN_CPU_CAPABILITY=default torch's compiler writes vectors that C++ does not know.
    dropped = ('TORCHDYNAMO_DISABLE', 'ATEN_CPU_CAPABILITY')
    env = {name: value for name, value in os.environ.items() if name not in dropped}
    env.update(changes, PYTHONPATH=os.pathsep.join(filter(None, sys.path)))
    command = [sys.executable, '-c', script, *args]
    done = subprocess.run(command, env=env, capture_output=True, text=True, timeout=900)
    assert done.returncode == 0, done.stderr
