# MMSeg's SegFormer on MiT-B0, in the setting of cct.py. z is what the main head has fused, at
# stride 4. Training on several GPUs converts BN to SyncBN.
model = dict(
    type='CCTSegmentor',
    data_preprocessor=dict(
        type='BranchPreprocessor',
        mean=[123.675, 116.28, 103.53],
        std=[58.395, 57.12, 57.375],
        bgr_to_rgb=True,
        pad_val=0,
        seg_pad_val=255,
        test_cfg=dict(size_divisor=32),
    ),
    backbone=dict(
        type='MixVisionTransformer',
        in_channels=3,
        embed_dims=32,
        num_stages=4,
        num_layers=[2, 2, 2, 2],
        num_heads=[1, 2, 5, 8],
        patch_sizes=[7, 3, 3, 3],
        sr_ratios=[8, 4, 2, 1],
        out_indices=(0, 1, 2, 3),
        mlp_ratio=4,
        qkv_bias=True,
        drop_rate=0.0,
        attn_drop_rate=0.0,
        drop_path_rate=0.1,
        init_cfg=dict(
            type='Pretrained',
            checkpoint='https://mmassets.onedl.ai/mmsegmentation/v0.5/pretrain/segformer/'
            'mit_b0_20220624-7e0fe6dd.pth',
        ),
    ),
    decode_head=dict(
        type='SegformerHead',
        in_channels=[32, 64, 160, 256],
        in_index=[0, 1, 2, 3],
        channels=256,
        dropout_ratio=0.1,
        norm_cfg=dict(type='BN', requires_grad=True),
        align_corners=False,
        loss_decode=dict(type='CrossEntropyLoss', use_sigmoid=False, loss_weight=1.0),
    ),
    auxiliary_head=dict(
        type='PerturbedDecoderBank',
        in_layer='conv_seg',
        in_channels=256,
        stride=4,
        # 30 is for VOC's 21 classes; L_u of C classes is scaled by C/21
        loss_consistency=dict(type='MSEConsistency', loss_weight=30.0, reference_classes=21),
    ),
    train_cfg=dict(),
    test_cfg=dict(mode='whole'),
)
