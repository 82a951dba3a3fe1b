# cct_mbv2-jpu_idd-lite_20 with an undilated ResNet-50 in Caffe's layout (weights: see
# docs/results.md), to see what CCT gains with another encoder. As there, what
# comes before stride 8 is frozen.
_base_ = './cct_mbv2-jpu_idd-lite_20.py'
model = dict(
    backbone=dict(
        _delete_=True,
        type='ResNet',
        depth=50,
        out_indices=(1, 2, 3),
        style='caffe',
        norm_cfg=dict(type='BN', requires_grad=True),
        init_cfg=dict(type='Pretrained', checkpoint='data/weights/resnet50_caffe.pth'),
    ),
    neck=dict(in_channels=(512, 1024, 2048), mid_channels=64),
    decode_head=dict(in_channels=256),
    auxiliary_head=dict(in_channels=256),
)
# 3e-3, for the backbone 3e-4: chosen among 1.2e-3, 3e-4 and 1e-4 by supervised training
optim_wrapper = dict(
    optimizer=dict(lr=3e-4),
    paramwise_cfg=dict(
        custom_keys={
            'neck.': dict(lr_mult=10.0),
            'head.': dict(lr_mult=10.0),
            'backbone.bn1': dict(lr_mult=0.0),
            'backbone.layer2': dict(lr_mult=1.0),
        }
    ),
)
