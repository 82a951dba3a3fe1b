"""What a config for a folder can be made of: backbones, ways to fine-tune them, and methods."""

from typing import NamedTuple


class Backbone(NamedTuple):
    """An encoder, or a model on one, by its short name.

    Attributes:
        title: What it is.
        model: Its file in `configs/_base_/models`.
        stride: Output stride of z.
        tuning: How it is fine-tuned, a key of `TUNINGS`.
        supervised_heads: Auxiliary heads of its baseline, as the config writes them.
        halves_crops: Whether training crops are half as wide and high as the images, so that a step
            takes a quarter of the time: for machines without a GPU.
    """

    title: str
    model: str
    stride: int
    tuning: str
    supervised_heads: str = 'None'
    halves_crops: bool = False


_MMSEG_HEADS = '_base_.model.auxiliary_head[:1]'  # MMSeg's own; the auxiliary decoders come last
BACKBONES = {
    'mbv2': Backbone('MobileNetV2', 'cct_mbv2-jpu', 8, 'adamw', halves_crops=True),
    'r18': Backbone('ResNet-18', 'cct_r18-d8', 8, 'sgd'),
    'r50': Backbone('ResNet-50', 'cct_r50-d8', 8, 'sgd'),
    'regnety': Backbone("timm's RegNetY-3.2GF", 'cct_timm-regnety', 8, 'sgd'),
    'convnext-t': Backbone('ConvNeXt-T', 'cct_convnext-t', 8, 'transformer'),
    'swin-t': Backbone('Swin-T', 'cct_swin-t', 16, 'transformer'),
    'mit-b0': Backbone('MiT-B0', 'cct_mit-b0', 16, 'transformer'),
    'mit-b2': Backbone('MiT-B2', 'cct_mit-b2', 16, 'transformer'),
    'deeplabv3plus-r50': Backbone(
        'DeepLabV3+ on ResNet-50', 'cct_deeplabv3plus-r50-d8', 4, 'sgd', _MMSEG_HEADS
    ),
    'deeplabv3plus-mbv2': Backbone(
        'DeepLabV3+ on MobileNetV2', 'cct_deeplabv3plus-mbv2', 4, 'adamw', halves_crops=True
    ),
    'upernet-swin-t': Backbone(
        'UPerNet on Swin-T', 'cct_upernet-swin-t', 4, 'transformer', _MMSEG_HEADS
    ),
    'segformer-mit-b0': Backbone('SegFormer on MiT-B0', 'cct_segformer-mit-b0', 4, 'transformer'),
    'segformer-mit-b2': Backbone('SegFormer on MiT-B2', 'cct_segformer-mit-b2', 4, 'transformer'),
    'dinov2-s': Backbone('DINOv2 ViT-S/14', 'cct_dinov2-s', 16, 'vit'),
    'dinov2-s-frozen': Backbone('DINOv2 ViT-S/14, frozen', 'cct_dinov2-s-frozen', 16, 'vit'),
    'dinov2-b': Backbone('DINOv2 ViT-B/14', 'cct_dinov2-b', 16, 'vit'),
    'dinov3-s': Backbone('DINOv3 ViT-S/16', 'cct_dinov3-s', 16, 'vit'),
}


class Part(NamedTuple):
    """A base file, and what a config adds to it.

    Attributes:
        base: Its name in `configs/_base_/schedules`; empty for none.
        settings: Lines of the config.
    """

    base: str
    settings: str


_ADAMW = """\
optim_wrapper = dict(
    type='OptimWrapper',
    optimizer=dict(type='AdamW', lr=2e-3, weight_decay=1e-4),{rates}
)
"""
_POLY = """\
param_scheduler = dict(
    type='PolyLR', power={power}, eta_min=0.0, begin=0, end=max_iters, by_epoch=False
)"""
TUNINGS = {
    'adamw': Part(
        '',
        _ADAMW.format(
            rates="\n    paramwise_cfg=dict(custom_keys={'backbone.': dict(lr_mult=0.2)}),"
        )
        + _POLY.format(power=0.9),
    ),
    'sgd': Part('sgd_poly', 'param_scheduler = dict(end=max_iters)'),
    'transformer': Part('adamw', _POLY.format(power=1.0)),
    'vit': Part('adamw_vit', 'param_scheduler = dict(end=max_iters)'),
    # random weights: the backbone learns as fast as the rest
    'scratch': Part('', _ADAMW.format(rates='') + _POLY.format(power=0.9)),
}

# A row is a choice of `--method` that is written whole. Its settings may change `model`,
# `train_dataloader` and all else that stands above them in the config.
WHOLE = {
    'supervised': Part(
        'cct',
        """
model.update(type='EncoderDecoder', auxiliary_head={heads})
train_dataloader['dataset']['unlabeled'] = None
custom_hooks = [dict(type='IterationSeedHook')]""",
    ),
    'cct': Part('cct_teacher', ''),
}


# Methods on strong views, files of `configs/_base_/methods`: a change of the folder's CCT each.
RECIPES = ('cct-plus', 'cct-strong', 'fixmatch', 'unimatch', 'unimatch-v2')
# Those that keep the auxiliary decoders, and with them the hooks of CCT.
WITH_BANK = ('cct-plus', 'cct-strong')
METHODS = (*WHOLE, *RECIPES)
