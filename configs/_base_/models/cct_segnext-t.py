# MMSeg's SegNeXt on MSCAN-T, in the setting of cct.py. z is what the main head has fused, at stride
# 8. Training on several GPUs converts BN to SyncBN.
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
        type='MSCAN',
        embed_dims=[32, 64, 160, 256],
        mlp_ratios=[8, 8, 4, 4],
        drop_rate=0.0,
        drop_path_rate=0.1,
        depths=[3, 3, 5, 2],
        attention_kernel_sizes=[5, [1, 7], [1, 11], [1, 21]],
        attention_kernel_paddings=[2, [0, 3], [0, 5], [0, 10]],
        act_cfg=dict(type='GELU'),
        norm_cfg=dict(type='BN', requires_grad=True),
        init_cfg=dict(
            type='Pretrained',
            checkpoint='https://mmassets.onedl.ai/mmsegmentation/v0.5/pretrain/segnext/'
            'mscan_t_20230227-119e8c9f.pth',
        ),
    ),
    decode_head=dict(
        type='LightHamHead',
        in_channels=[64, 160, 256],
        in_index=[1, 2, 3],
        channels=256,
        ham_channels=256,
        dropout_ratio=0.1,
        norm_cfg=dict(type='GN', num_groups=32, requires_grad=True),
        align_corners=False,
        loss_decode=dict(type='CrossEntropyLoss', use_sigmoid=False, loss_weight=1.0),
        ham_kwargs=dict(MD_S=1, MD_R=16, train_steps=6, eval_steps=7, inv_t=100, rand_init=True),
    ),
    auxiliary_head=dict(
        type='PerturbedDecoderBank',
        in_layer='conv_seg',
        in_channels=256,
        stride=8,
        # 30 is for VOC's 21 classes; L_u of C classes is scaled by C/21
        loss_consistency=dict(type='MSEConsistency', loss_weight=30.0, reference_classes=21),
    ),
    train_cfg=dict(),
    test_cfg=dict(mode='whole'),
)
