# DINOv2's ViT-S/14 with DINO's linear head on its layers 3, 6, 9 and 12, at stride 16: the image is
# resized by 14/16, the weights stay. timm fetches them when the model is built. To load a file:
#   --cfg-options model.backbone.pretrained_cfg_overlay.file=FILE
# To train only the head: --cfg-options model.backbone.frozen=True
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
        type='TimmViT',
        model_name='vit_small_patch14_dinov2.lvd142m',
        out_indices=(2, 5, 8, 11),
        stride=16,
        frozen=False,
        pretrained=True,
        pretrained_cfg_overlay=dict(),
    ),
    neck=dict(type='ConcatNeck', in_channels=(384, 384, 384, 384), channels=512),
    decode_head=dict(
        type='FCNHead',
        in_channels=512,
        channels=512,
        in_index=-1,
        num_convs=0,  # only a 1×1 convolution
        concat_input=False,
        dropout_ratio=0.0,
        align_corners=False,
        loss_decode=dict(type='MeanCrossEntropy', avg_non_ignore=True),
    ),
    auxiliary_head=dict(
        type='PerturbedDecoderBank',
        in_channels=512,
        stride=16,
        # 30 is for VOC's 21 classes; L_u of C classes is scaled by C/21
        loss_consistency=dict(type='MSEConsistency', loss_weight=30.0, reference_classes=21),
    ),
    train_cfg=dict(),
    test_cfg=dict(mode='whole'),
)
