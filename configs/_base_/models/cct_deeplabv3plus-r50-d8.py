# MMSeg's DeepLabV3+ on ResNet-50 with its FCN auxiliary head, in the setting of cct.py. z is what
# the main head has fused, at stride 4.
_base_ = 'mmseg::_base_/models/deeplabv3plus_r50-d8.py'
bn = dict(type='BN', requires_grad=True)  # training on several GPUs converts it to SyncBN
model = dict(
    type='CCTSegmentor',
    pretrained=None,
    data_preprocessor=dict(type='BranchPreprocessor', test_cfg=dict(size_divisor=8)),
    backbone=dict(
        norm_cfg=bn, init_cfg=dict(type='Pretrained', checkpoint='open-mmlab://resnet50_v1c')
    ),
    decode_head=dict(num_classes=None, norm_cfg=bn),
    auxiliary_head=[
        dict(_base_.model.auxiliary_head, num_classes=None, norm_cfg=bn),
        dict(
            type='PerturbedDecoderBank',
            in_layer='conv_seg',
            in_channels=512,
            stride=4,
            num_classes=None,
            # 30 is for VOC's 21 classes; L_u of C classes is scaled by C/21
            loss_consistency=dict(type='MSEConsistency', loss_weight=30.0, reference_classes=21),
        ),
    ],
)
