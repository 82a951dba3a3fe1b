# For machines without a GPU: MMSeg's DeepLabV3+ on MobileNetV2 as it was pretrained, without
# dilation. z is what the main head has fused: 128 channels at stride 4. It has a third of
# the paper's auxiliary decoders, with 32 channels: with few classes, C channels are a bottleneck.
model = dict(
    type='CCTSegmentor',
    data_preprocessor=dict(
        type='BranchPreprocessor',
        mean=[123.675, 116.28, 103.53],
        std=[58.395, 57.12, 57.375],
        bgr_to_rgb=True,
        pad_val=0,
        seg_pad_val=255,
        test_cfg=dict(size_divisor=16),
    ),
    backbone=dict(
        type='MobileNetV2',
        widen_factor=1.0,
        out_indices=(1, 6),
        norm_cfg=dict(type='BN', requires_grad=True),
        init_cfg=dict(type='Pretrained', checkpoint='mmcls://mobilenet_v2'),
    ),
    decode_head=dict(
        type='DepthwiseSeparableASPPHead',
        in_channels=320,
        in_index=1,
        channels=128,
        dilations=(1, 6, 12, 18),
        c1_in_channels=24,
        c1_channels=48,
        dropout_ratio=0.1,
        norm_cfg=dict(type='BN', requires_grad=True),
        align_corners=False,
        loss_decode=dict(type='MeanCrossEntropy', avg_non_ignore=True),
    ),
    auxiliary_head=dict(
        type='PerturbedDecoderBank',
        in_layer='conv_seg',
        in_channels=128,
        channels=32,
        stride=4,
        perturbations=dict(
            vat=dict(type='IntermediateVAT', num_decoders=1),
            dropout=dict(type='SpatialDropout', num_decoders=2),
            guided_cutout=dict(type='GuidedCutout', num_decoders=2),
            context_masking=dict(type='ContextMasking', num_decoders=1),
            object_masking=dict(type='ObjectMasking', num_decoders=1),
            feature_drop=dict(type='FeatureDrop', num_decoders=2),
            feature_noise=dict(type='FeatureNoise', num_decoders=2),
        ),
        # 30 is for VOC's 21 classes; L_u of C classes is scaled by C/21
        loss_consistency=dict(type='MSEConsistency', loss_weight=30.0, reference_classes=21),
    ),
    train_cfg=dict(),
    test_cfg=dict(mode='whole'),
)
