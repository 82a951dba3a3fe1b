# For machines without a GPU: MobileNetV2 as it was pretrained, without dilation. MMSeg's joint
# pyramid upsampling fuses its last stages into a z of 4 × 16 channels at stride 8. MMSeg's FCNHead
# is the main decoder: its 3×3 convolution and bilinear upsampling give smooth borders, where
# sub-pixel convolutions leave blocks and ragged edges with few labels (docs/models.md). It has a
# third of the paper's auxiliary decoders, with 32 channels: with few classes, C channels are a
# bottleneck.
model = dict(
    type='CCTSegmentor',
    data_preprocessor=dict(
        type='BranchPreprocessor',
        mean=[123.675, 116.28, 103.53],
        std=[58.395, 57.12, 57.375],
        bgr_to_rgb=True,
        pad_val=0,
        seg_pad_val=255,
        test_cfg=dict(size_divisor=8),
    ),
    backbone=dict(
        type='MobileNetV2',
        widen_factor=1.0,
        out_indices=(2, 4, 6),
        norm_cfg=dict(type='BN', requires_grad=True),
        init_cfg=dict(type='Pretrained', checkpoint='mmcls://mobilenet_v2'),
    ),
    neck=dict(type='JPU', in_channels=(32, 96, 320), mid_channels=16),
    decode_head=dict(
        type='FCNHead',
        in_channels=64,
        channels=64,
        num_convs=1,
        concat_input=False,
        dropout_ratio=0.1,
        norm_cfg=dict(type='BN', requires_grad=True),
        align_corners=False,
        loss_decode=dict(type='MeanCrossEntropy', avg_non_ignore=True),
    ),
    auxiliary_head=dict(
        type='PerturbedDecoderBank',
        in_channels=64,
        channels=32,
        stride=8,
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
