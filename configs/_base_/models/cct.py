# CCT without its encoder, in the paper's setting: z of 512 channels at stride 8, 30 auxiliary
# decoders. A backbone's file adds `backbone` and `neck`; a config adds the number of classes, the
# size of the crops and the context classes of its data.
model = dict(
    type='CCTSegmentor',
    data_preprocessor=dict(
        type='BranchPreprocessor',
        mean=[123.675, 116.28, 103.53],
        std=[58.395, 57.12, 57.375],
        bgr_to_rgb=True,
        # crops of smaller images are padded right and below with mean colour and ignored labels
        pad_val=0,
        seg_pad_val=255,
        # whole images of any size; the padding is cut off the prediction again
        test_cfg=dict(size_divisor=8),
    ),
    decode_head=dict(
        type='PixelShuffleHead',
        in_channels=512,
        stride=8,
        # the mean over the pixels that have a label; MMSeg's default counts the padding too
        loss_decode=dict(type='MeanCrossEntropy', avg_non_ignore=True),
    ),
    auxiliary_head=dict(
        type='PerturbedDecoderBank',
        in_channels=512,
        stride=8,
        perturbations=dict(
            vat=dict(type='IntermediateVAT', num_decoders=2, epsilon=2.0, xi=1e-6),
            dropout=dict(type='SpatialDropout', num_decoders=6, drop_ratio=0.5),
            guided_cutout=dict(type='GuidedCutout', num_decoders=6, side_ratio=0.4),
            context_masking=dict(type='ContextMasking', num_decoders=2),
            object_masking=dict(type='ObjectMasking', num_decoders=2),
            feature_drop=dict(type='FeatureDrop', num_decoders=6, threshold_range=(0.6, 0.9)),
            feature_noise=dict(type='FeatureNoise', num_decoders=6, noise_range=0.3),
        ),
        # 30 is for VOC's 21 classes; L_u of C classes is scaled by C/21
        loss_consistency=dict(type='MSEConsistency', loss_weight=30.0, reference_classes=21),
    ),
    train_cfg=dict(),
    test_cfg=dict(mode='whole'),
)
