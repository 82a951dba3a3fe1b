# MobileNetV2 at output stride 8, with a z of 128 channels: for machines without a GPU.
_base_ = './cct.py'
model = dict(
    backbone=dict(
        type='MobileNetV2',
        widen_factor=1.0,
        strides=(1, 2, 2, 1, 1, 1, 1),
        dilations=(1, 1, 1, 2, 2, 4, 4),
        # MMSeg's MobileNetV2 returns a bare tensor for a single index
        out_indices=(4, 6),
        norm_cfg=dict(type='BN', requires_grad=True),
        init_cfg=dict(type='Pretrained', checkpoint='mmcls://mobilenet_v2'),
    ),
    neck=dict(type='PSPNeck', in_channels=320, channels=128),
    decode_head=dict(in_channels=128),
    auxiliary_head=dict(in_channels=128),
)
