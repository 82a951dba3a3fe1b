"""Tiny decoders and contexts for the tests of the perturbations."""

import copy

import torch
import torch.nn.functional as F
from mmengine.config import ConfigDict
from mmengine.structures import PixelData
from mmseg.registry import MODELS
from mmseg.structures import SegDataSample

from mmseg_cct.engine.hooks.teacher_hook import use_batch_statistics
from mmseg_cct.models import PerturbedDecoderBank
from mmseg_cct.models.perturbations import PerturbationContext

N, D, C, H, W, STRIDE = 3, 10, 4, 6, 5, 4


def bank(k, dtype=torch.float32, seed=0, channels=D, **kwargs):
    """A bank of k decoders."""
    torch.manual_seed(seed)
    made = PerturbedDecoderBank(
        channels,
        C,
        dict(masking=dict(type='ObjectMasking', num_decoders=k)),
        dict(type='MSEConsistency'),
        **dict(dict(stride=STRIDE, compile=False), **kwargs),
    )
    return made.to(dtype)


def decoders(k, *args, **kwargs):
    """k decoders as their perturbation sees them."""
    return bank(k, *args, **kwargs).group(slice(0, k))


def context(
    dtype=torch.float32,
    seed=1,
    num_images=N,
    size=(H, W),
    stride=STRIDE,
    channels=D,
    context_classes=(0,),
    positions=None,
):
    """z ≥ 0, as after a ReLU, and a main prediction with regions larger than a pixel."""
    torch.manual_seed(seed)
    z = torch.randn(num_images, channels, *size).relu().to(dtype)
    coarse = torch.randn(num_images, C, 3, 3)
    seg_logits = F.interpolate(coarse, (size[0] * stride, size[1] * stride), mode='bilinear')
    return PerturbationContext(z, seg_logits.to(dtype), context_classes, positions)


def perturb(perturbation, shared, group=None, seed=5):
    """z~ `(k, N, D, S)` drawn under a seed."""
    torch.manual_seed(seed)
    return perturbation.perturb(group, shared)


def model_config(**kwargs):
    """A CCT model of a few thousand parameters: 3 classes, stride 8, z of 6 channels."""
    names = ['IntermediateVAT', 'SpatialDropout', 'GuidedCutout', 'ContextMasking', 'ObjectMasking']
    names += ['FeatureDrop', 'FeatureNoise']
    stages = dict(num_stages=2, strides=(1, 2), dilations=(1, 1), out_indices=(0, 1))
    config = ConfigDict(
        type='CCTSegmentor',
        data_preprocessor=dict(
            type='BranchPreprocessor',
            mean=[120.0] * 3,
            std=[60.0] * 3,
            bgr_to_rgb=True,
            size=(32, 32),
            seg_pad_val=255,
            test_cfg=dict(size_divisor=8),
        ),
        backbone=dict(type='ResNet', depth=18, base_channels=4, stem_channels=4, **stages),
        neck=dict(type='PSPNeck', in_channels=8, channels=6),
        decode_head=dict(type='PixelShuffleHead', in_channels=6, num_classes=3),
        auxiliary_head=dict(
            type='PerturbedDecoderBank',
            in_channels=6,
            num_classes=3,
            context_classes=(0,),
            compile=False,
            perturbations={n: dict(type=n, num_decoders=1) for n in names},
            loss_consistency=dict(type='MSEConsistency', loss_weight=30.0),
        ),
        train_cfg=dict(),
        test_cfg=dict(mode='whole'),
    )
    config.update(kwargs)
    return config


def build(seed=0, **kwargs):
    """The model of `model_config`."""
    torch.manual_seed(seed)
    return MODELS.build(model_config(**kwargs))


def calls(owner, name):
    """The arguments of each later call of a method."""
    seen, method = [], getattr(owner, name)
    setattr(owner, name, lambda *args: seen.append(args) or method(*args))
    return seen


def widen(model):
    """Gives a tiny model channels enough for weights that are channels last.

    With fewer than 8 oneDNN's AVX2 kernels corrupt the heap in strided 1×1 convolutions.
    """
    model['backbone'].update(base_channels=8, stem_channels=8)
    model['neck']['in_channels'] = 16
    return model


def multi_domain_config(**kwargs):
    """The tiny model for the domains `first` (3 classes, 32×32) and `second` (5, 24×40)."""
    config = model_config(type='MultiDomainCCTSegmentor')
    del config['data_preprocessor']['size']
    config['domains'] = dict(
        first=dict(data_preprocessor=dict(size=(32, 32))),
        second=dict(
            data_preprocessor=dict(size=(24, 40), mean=[90.0] * 3),
            decode_head=dict(num_classes=5),
            auxiliary_head=dict(num_classes=5, context_classes=(1,)),
        ),
    )
    config.update(kwargs)
    return config


def mean_teacher_config(**kwargs):
    consistency = dict(type='MSEConsistency', loss_weight=30.0)
    own = dict(auxiliary_head=None, loss_consistency=consistency)
    return model_config(type='MeanTeacherSegmentor', **own, **kwargs)


def mean_teacher(seed=0, **kwargs):
    """A tiny student that learns from a teacher."""
    return build(seed, **mean_teacher_config(**kwargs))


def taught(batch_statistics=True, **kwargs):
    """The student and its teacher of other weights."""
    model, teacher = mean_teacher(**kwargs), mean_teacher(seed=9).requires_grad_(False).eval()
    if batch_statistics:  # as `TeacherHook` does
        use_batch_statistics(teacher)
    model.set_teacher(teacher)
    return model, teacher


def pair_batch(num_images, size=(32, 32)):
    """Normalised pairs for a segmentor: 3 classes, labels for the labelled branch alone."""
    batch = raw_batch(num_images=num_images, size=size)
    batch['inputs'] = {branch: torch.randn(num_images, 3, *size) for branch in batch['inputs']}
    return batch


def raw_batch(
    branches=('labeled', 'unlabeled'), num_images=2, size=(32, 32), num_classes=3, seed=1, **meta
):
    """Branches as a data loader gives them, before preprocessing; masks of the labelled one."""
    torch.manual_seed(seed)
    batch = dict(inputs={}, data_samples={})
    for branch in branches:
        batch['inputs'][branch] = [
            torch.randint(0, 256, (3, *size), dtype=torch.uint8) for _ in range(num_images)
        ]
        batch['data_samples'][branch] = [
            SegDataSample(metainfo=dict(img_shape=size, ori_shape=size, **meta))
            for _ in range(num_images)
        ]
    for sample in batch['data_samples']['labeled']:
        sample.gt_sem_seg = PixelData(data=torch.randint(0, num_classes, (1, *size)))
    return batch


def with_teacher(model):
    """Gives a model a teacher, a copy with somewhat other weights, and returns the teacher."""
    teacher = copy.deepcopy(model).requires_grad_(False).eval()
    with torch.no_grad():
        for parameter in teacher.parameters():
            parameter.add_(0.1 * torch.randn_like(parameter))
    model.set_teacher(teacher)
    return teacher
