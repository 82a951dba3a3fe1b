# SegFormer's MiT-B2 at output stride 16: the last patch embedding keeps the resolution (stride 1).
# The public weights fit as they are.
_base_ = './cct.py'
model = dict(
    data_preprocessor=dict(test_cfg=dict(size_divisor=16)),
    backbone=dict(
        type='MixVisionTransformer',
        embed_dims=64,
        num_layers=(3, 4, 6, 3),
        num_heads=(1, 2, 5, 8),
        patch_sizes=(7, 3, 3, 3),
        strides=(4, 2, 2, 1),
        sr_ratios=(8, 4, 2, 1),
        drop_path_rate=0.1,
        out_indices=(3,),
        init_cfg=dict(
            type='Pretrained',
            checkpoint='https://mmassets.onedl.ai/mmsegmentation/v0.5/pretrain/segformer/'
            'mit_b2_20220624-66e8bf70.pth',
        ),
    ),
    neck=dict(type='PSPNeck', in_channels=512, channels=512),
    decode_head=dict(stride=16),
    auxiliary_head=dict(stride=16),
)
