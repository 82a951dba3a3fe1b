# MMSeg's SegFormer on MiT-B2.
_base_ = './cct_segformer-mit-b0.py'
model = dict(
    backbone=dict(
        embed_dims=64,
        num_layers=[3, 4, 6, 3],
        init_cfg=dict(
            checkpoint='https://mmassets.onedl.ai/mmsegmentation/v0.5/pretrain/segformer/'
            'mit_b2_20220624-66e8bf70.pth',
        ),
    ),
    decode_head=dict(in_channels=[64, 128, 320, 512]),
)
