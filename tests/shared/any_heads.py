"""Tiny models whose heads return each kind of thing, by the names of their heads.

Those of masks, which need mmdetection, are trained by `benchmarks/all_models.py`.
"""

import copy
from importlib.util import find_spec

import pytest
import torch
from mmengine.config import ConfigDict
from mmengine.structures import PixelData
from mmseg.registry import MODELS

C, SIZE = 3, (64, 64)
BN = dict(type='BN')
RESNET = dict(
    type='ResNet', depth=18, base_channels=4, stem_channels=4, strides=(1, 2, 1, 1),
    dilations=(1, 1, 2, 4), out_indices=(0, 1, 2, 3),
)  # fmt: skip
COMMON = dict(channels=8, num_classes=C, norm_cfg=BN)
FCN = dict(COMMON, type='FCNHead', in_channels=16, in_index=2, num_convs=1)
TWO = [dict(type='OhemCrossEntropy', thres=0.9, min_kept=9)] * 2
POINT = dict(
    type='PointHead', in_channels=[4], in_index=[0], channels=8, num_fcs=1, num_classes=C,
    loss_decode=dict(type='CrossEntropyLoss'),
)  # fmt: skip
PIDNET_LOSSES = [
    dict(type='CrossEntropyLoss'), TWO[0], dict(type='BoundaryLoss'), TWO[0],
]  # fmt: skip

SWIN = dict(
    type='SwinTransformer', embed_dims=8, depths=(1, 1, 1, 1), num_heads=(1, 2, 2, 2),
    window_size=2, drop_path_rate=0.3, out_indices=(0, 1, 2, 3),
)  # fmt: skip
MIT = dict(
    type='MixVisionTransformer', embed_dims=4, num_layers=(1, 1, 1, 1), num_heads=(1, 2, 4, 8),
    drop_path_rate=0.1, out_indices=(0, 1, 2, 3),
)  # fmt: skip
ASPP = dict(in_channels=32, in_index=3, dilations=(1, 2), c1_in_channels=4, c1_channels=4)


def on_stages(head, *channels, **settings):
    return dict(COMMON, type=head, in_channels=[*channels], in_index=[0, 1, 2, 3], **settings)


# by head: backbone, main decoder, where the fused features are
HEADS = {
    'DepthwiseSeparableASPPHead': (
        RESNET,
        dict(COMMON, type='DepthwiseSeparableASPPHead', **ASPP),
        'conv_seg',
    ),
    'UPerHead': (SWIN, on_stages('UPerHead', 8, 16, 32, 64, pool_scales=(1, 2)), 'conv_seg'),
    'SegformerHead': (MIT, on_stages('SegformerHead', 4, 8, 16, 32), 'conv_seg'),
    'DAHead': (
        RESNET,
        dict(COMMON, type='DAHead', in_channels=32, in_index=3, pam_channels=2),
        'conv_seg',
    ),
    'EncHead': (
        RESNET,
        dict(COMMON, type='EncHead', in_channels=[16, 32], in_index=[2, 3], num_codes=4),
        'conv_seg',
    ),
    'DDRHead': (
        dict(type='DDRNet', channels=8, ppm_channels=8, norm_cfg=BN),
        dict(COMMON, type='DDRHead', in_channels=32, loss_decode=TWO),
        'conv_seg',
    ),
    'PIDHead': (
        dict(type='PIDNet', channels=8, ppm_channels=8, num_stem_blocks=1, num_branch_blocks=1),
        dict(COMMON, type='PIDHead', in_channels=32, loss_decode=PIDNET_LOSSES),
        'conv_seg',
    ),
    'OCRHead': (
        RESNET,
        [FCN, dict(COMMON, type='OCRHead', in_channels=32, in_index=3, ocr_channels=4)],
        '1.conv_seg',
    ),
    'PointHead': (RESNET, [FCN, POINT], '0.conv_seg'),
}
needs_operators = pytest.mark.skipif(find_spec('mmcv._ext') is None, reason='no mmcv._ext')
each_head = pytest.mark.parametrize(
    'name',
    [pytest.param(n, marks=needs_operators) if n == 'PointHead' else n for n in HEADS],
)


def settings(name, kind=None, **kwargs):
    """The config of a model; MMSeg's own by default."""
    backbone, head, _ = HEADS[name]
    cascade = isinstance(head, list)
    stages = dict(num_stages=len(head)) if cascade else {}
    return ConfigDict(
        type=kind or ('CascadeEncoderDecoder' if cascade else 'EncoderDecoder'),
        backbone=copy.deepcopy(backbone),
        decode_head=copy.deepcopy(head),
        train_cfg=dict(num_points=64, oversample_ratio=3, importance_sample_ratio=0.75),
        test_cfg=dict(mode='whole', subdivision_steps=2, subdivision_num_points=64, scale_factor=2),
        **stages,
        **kwargs,
    )


def build(name, kind=None, **kwargs):
    """Builds it, with the same weights of backbone and main decoder for any kind."""
    torch.manual_seed(0)
    return MODELS.build(settings(name, kind, **kwargs))


def with_edges(samples):
    """Adds what PIDNet also learns."""
    for sample in samples:
        sample.gt_edge_map = PixelData(data=(sample.gt_sem_seg.data == 1).long())
    return samples
