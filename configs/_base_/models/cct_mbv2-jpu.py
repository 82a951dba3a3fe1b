# MobileNetV2 as it was pretrained, without dilation: MMSeg's joint pyramid upsampling fuses its
# last stages into a z of 4 × 16 channels at stride 8. For machines without a GPU: half the time of
# cct_mbv2-d8.py and, with few labels, more accurate (docs/results.md).
_base_ = './cct.py'
model = dict(
    backbone=dict(
        type='MobileNetV2',
        widen_factor=1.0,
        out_indices=(2, 4, 6),
        norm_cfg=dict(type='BN', requires_grad=True),
        init_cfg=dict(type='Pretrained', checkpoint='mmcls://mobilenet_v2'),
    ),
    neck=dict(type='JPU', in_channels=(32, 96, 320), mid_channels=16),
    decode_head=dict(in_channels=64),
    auxiliary_head=dict(in_channels=64),
)
