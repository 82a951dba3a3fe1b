# CCT on synthetic scenes, from random weights, in minutes on two CPU cores, for tools/demo.sh.
_base_ = [
    '../_base_/models/cct.py',
    '../_base_/datasets/shapes.py',
    '../_base_/schedules/cct.py',
]

channels, stride = 32, 4
# the decoders' hidden width: seven channels would be a bottleneck
decoder = dict(in_channels=channels, stride=stride, num_classes=7, channels=16)
model = dict(
    data_preprocessor=dict(size=_base_.crop_size, test_cfg=dict(size_divisor=stride)),
    # two of ResNet-18's four stages at a quarter of its width: z is 12×12
    backbone=dict(
        type='ResNetV1c',
        depth=18,
        stem_channels=16,
        base_channels=16,
        num_stages=2,
        strides=(1, 1),
        dilations=(1, 1),
        out_indices=(1,),
        norm_cfg=dict(type='BN', requires_grad=True),
    ),
    neck=dict(type='PSPNeck', in_channels=32, channels=channels),
    decode_head=decoder,
    auxiliary_head=dict(
        **decoder,
        context_classes=('background',),  # what is not an object
        # one decoder of each kind except I-VAT, which costs as much as all others here
        perturbations=dict(
            vat=dict(num_decoders=0),
            dropout=dict(num_decoders=1),
            guided_cutout=dict(num_decoders=1),
            context_masking=dict(num_decoders=1),
            object_masking=dict(num_decoders=1),
            feature_drop=dict(num_decoders=1),
            feature_noise=dict(num_decoders=1),
        ),
        loss_consistency=dict(loss_weight=15.0, reference_classes=None),
    ),
)

train_cfg = dict(max_iters=1400, val_interval=350)
# random weights: the backbone learns as fast as the rest
optim_wrapper = dict(
    type='OptimWrapper',
    constructor='MergedOptimWrapperConstructor',
    optimizer=dict(type='AdamW', lr=1e-2, weight_decay=1e-4),
)
param_scheduler = dict(type='PolyLR', power=0.9, eta_min=0.0, begin=0, end=1400, by_epoch=False)
default_hooks = dict(
    # targets in eval mode, from the student of the step before; otherwise it would confirm its own
    # mistakes (docs/results.md)
    teacher=dict(type='TeacherHook', decay=1e-6),
    logger=dict(interval=50),
    checkpoint=dict(save_best=None),
    memory_format=dict(enabled=True),  # a tenth faster on a CPU
)
