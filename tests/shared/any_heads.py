"""Tiny models whose heads return each kind of thing, by the names of their heads."""

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
LAYER = dict(
    self_attn_cfg=dict(embed_dims=8, num_heads=2, batch_first=True),
    cross_attn_cfg=dict(embed_dims=8, num_heads=2, batch_first=True),
    ffn_cfg=dict(embed_dims=8, feedforward_channels=8),
)
MASKFORMER = dict(
    type='MaskFormerHead', in_channels=[4, 8, 16, 32], feat_channels=8, out_channels=8,
    num_classes=C, num_queries=5, in_index=[0, 1, 2, 3],
    pixel_decoder=dict(type='mmdet.PixelDecoder', norm_cfg=dict(type='GN', num_groups=2)),
    transformer_decoder=dict(num_layers=2, layer_cfg=LAYER, return_intermediate=True),
    positional_encoding=dict(num_feats=4, normalize=True),
    loss_cls=dict(type='mmdet.CrossEntropyLoss', class_weight=[1.0] * C + [0.1]),
    loss_mask=dict(type='mmdet.FocalLoss', use_sigmoid=True),
    loss_dice=dict(type='mmdet.DiceLoss', use_sigmoid=True, activate=True, naive_dice=True),
    train_cfg=dict(
        assigner=dict(
            type='mmdet.HungarianAssigner',
            match_costs=[dict(type='mmdet.ClassificationCost')],
        ),
        sampler=dict(type='mmdet.MaskPseudoSampler'),
    ),
)  # fmt: skip
MASK2FORMER = dict(
    MASKFORMER, type='Mask2FormerHead', strides=[4, 8, 8, 8],
    num_transformer_feat_level=3,
    pixel_decoder=dict(
        type='mmdet.MSDeformAttnPixelDecoder', num_outs=3, norm_cfg=dict(type='GN', num_groups=2),
        encoder=dict(
            num_layers=1,
            layer_cfg=dict(
                self_attn_cfg=dict(embed_dims=8, num_heads=2, num_levels=3, batch_first=True),
                ffn_cfg=dict(embed_dims=8, feedforward_channels=8),
            ),
        ),
        positional_encoding=dict(num_feats=4, normalize=True),
    ),
    loss_mask=dict(type='mmdet.CrossEntropyLoss', use_sigmoid=True),
    train_cfg=dict(
        MASKFORMER['train_cfg'], num_points=64, oversample_ratio=3, importance_sample_ratio=0.75
    ),
)  # fmt: skip

# by head: backbone, main decoder, where the fused features are
HEADS = {
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
    'MaskFormerHead': (RESNET, MASKFORMER, 'pixel_decoder.mask_feature'),
    'Mask2FormerHead': (RESNET, MASK2FORMER, 'pixel_decoder.mask_feature'),
}
_PACKAGES = dict(
    PointHead=['mmcv._ext'],
    MaskFormerHead=['mmcv._ext', 'mmdet'],
    Mask2FormerHead=['mmcv._ext', 'mmdet'],
)
each_head = pytest.mark.parametrize(
    'name',
    [
        pytest.param(name, marks=pytest.mark.skipif(bool(missing), reason=f'no {missing}'))
        for name in HEADS
        for missing in [[p for p in _PACKAGES.get(name, ()) if find_spec(p) is None]]
    ],
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
