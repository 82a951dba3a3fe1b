# CCT on drawn scenes, from random weights, in minutes on two CPU cores: what tools/demo.sh trains.
_base_ = [
    '../_base_/models/cct.py',
    '../_base_/datasets/shapes.py',
    '../_base_/schedules/cct.py',
    '../_base_/default_runtime.py',
]

channels, num_classes, stride = 64, 7, 4
model = dict(
    data_preprocessor=dict(size=(64, 64), test_cfg=dict(size_divisor=stride)),
    # three of ResNet-18's four stages at a quarter of its width: z is 16×16
    backbone=dict(
        type='ResNetV1c',
        depth=18,
        stem_channels=16,
        base_channels=16,
        num_stages=3,
        strides=(1, 1, 1),
        dilations=(1, 1, 1),
        out_indices=(2,),
        norm_cfg=dict(type='BN', requires_grad=True),
    ),
    neck=dict(type='PSPNeck', in_channels=64, channels=channels),
    decode_head=dict(in_channels=channels, num_classes=num_classes, stride=stride),
    auxiliary_head=dict(in_channels=channels, num_classes=num_classes, stride=stride),
)

max_iters = 400
train_cfg = dict(max_iters=max_iters, val_interval=100)
# random weights: the backbone learns as fast as the rest
optim_wrapper = dict(type='OptimWrapper', optimizer=dict(type='AdamW', lr=2e-3, weight_decay=1e-4))
param_scheduler = dict(
    type='PolyLR', power=0.9, eta_min=0.0, begin=0, end=max_iters, by_epoch=False
)
default_hooks = dict(checkpoint=dict(interval=max_iters, save_best=None))
