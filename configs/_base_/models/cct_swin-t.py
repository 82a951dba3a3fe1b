# Swin-T at output stride 16: the last patch merging keeps the resolution (stride 1). The public
# weights fit as they are, and only the last stage costs more than at stride 32.
_base_ = './cct.py'
model = dict(
    data_preprocessor=dict(test_cfg=dict(size_divisor=16)),
    backbone=dict(
        type='SwinTransformer',
        embed_dims=96,
        depths=(2, 2, 6, 2),
        num_heads=(3, 6, 12, 24),
        strides=(4, 2, 2, 1),
        window_size=7,
        drop_path_rate=0.3,
        out_indices=(3,),
        init_cfg=dict(
            type='Pretrained',
            checkpoint='https://mmassets.onedl.ai/mmsegmentation/v0.5/pretrain/swin/'
            'swin_tiny_patch4_window7_224_20220317-1cdeb081.pth',
        ),
    ),
    neck=dict(type='PSPNeck', in_channels=768, channels=512),
    decode_head=dict(stride=16),
    auxiliary_head=dict(stride=16),
)
