# SegFormer's smallest encoder at output stride 16, with a z of 128 channels.
_base_ = './cct_mit-b2.py'
model = dict(
    backbone=dict(
        embed_dims=32,
        num_layers=(2, 2, 2, 2),
        init_cfg=dict(
            checkpoint='https://mmassets.onedl.ai/mmsegmentation/v0.5/pretrain/segformer/'
            'mit_b0_20220624-7e0fe6dd.pth',
        ),
    ),
    neck=dict(in_channels=256, channels=128),
    decode_head=dict(in_channels=128),
    auxiliary_head=dict(in_channels=128),
)
