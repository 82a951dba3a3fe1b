# mmpretrain's ConvNeXt-T. Its strides are fixed at 4, 8, 16, 32; in place of the pyramid pooling,
# MMSeg's joint pyramid upsampling fuses the last three stages into a z of 4 × 128 channels at
# stride 8.
_base_ = './cct.py'
model = dict(
    backbone=dict(
        type='mmpretrain.ConvNeXt',
        arch='tiny',
        out_indices=(1, 2, 3),
        drop_path_rate=0.4,
        layer_scale_init_value=1.0,
        gap_before_final_norm=False,
        init_cfg=dict(
            type='Pretrained',
            prefix='backbone.',
            checkpoint='https://mmassets.onedl.ai/mmclassification/v0/convnext/downstream/'
            'convnext-tiny_3rdparty_32xb128-noema_in1k_20220301-795e9634.pth',
        ),
    ),
    neck=dict(type='JPU', in_channels=(192, 384, 768), mid_channels=128),
)
