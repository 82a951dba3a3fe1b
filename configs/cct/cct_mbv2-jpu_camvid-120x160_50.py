# The setting of cct_mbv2-jpu_idd-lite-112x160_50.py on CamVid: a run of minutes on one CPU core.
_base_ = [
    '../_base_/models/cct_mbv2-jpu.py',
    '../_base_/datasets/camvid_120x160.py',
    '../_base_/schedules/cct.py',
    '../_base_/schedules/adamw.py',
    '../_base_/default_runtime.py',
]

lambda_u = 30.0 * 11 / 21  # the MSE is a mean over classes: 30 belongs to the 21 of VOC
model = dict(
    data_preprocessor=dict(size=(120, 160)),
    decode_head=dict(num_classes=11, norm_cfg=None),
    auxiliary_head=dict(
        num_classes=11,
        context_classes=('Sky', 'Building', 'Road', 'Pavement', 'Tree', 'Fence'),
        position_fraction=0.5,
        loss_consistency=dict(loss_weight=lambda_u),
    ),
)

n_labeled = 50
max_iters = 600

resize = dict(type='Resize', scale=(160, 120), keep_ratio=False)
flip = dict(type='RandomFlip', prob=0.5)
train_dataloader = dict(
    batch_size=8,
    dataset=dict(
        labeled=dict(
            ann_file=f'{_base_.split_dir}/{n_labeled}_labeled.txt',
            pipeline=[
                dict(type='LoadImageFromFile'),
                dict(type='LoadAnnotations'),
                resize,
                flip,
                dict(type='PackSegInputs'),
            ],
        ),
        unlabeled=dict(
            ann_file=f'{_base_.split_dir}/{n_labeled}_unlabeled.txt',
            pipeline=[
                dict(type='LoadImageFromFile'),
                resize,
                flip,
                dict(type='PackSegInputs'),
            ],
        ),
    ),
)
# 3e-3, for the backbone 1.2e-3; its first stages keep the weights of ImageNet
optim_wrapper = dict(
    optimizer=dict(lr=1.2e-3),
    paramwise_cfg=dict(
        custom_keys={
            'neck.': dict(lr_mult=2.5),
            'head.': dict(lr_mult=2.5),
            'backbone.conv1': dict(lr_mult=0.0),
            'backbone.layer1': dict(lr_mult=0.0),
            'backbone.layer2': dict(lr_mult=0.0),
        }
    ),
)
train_cfg = dict(max_iters=max_iters, val_interval=150)
param_scheduler = dict(
    type='PolyLR', power=0.9, eta_min=0.0, begin=0, end=max_iters, by_epoch=False
)
custom_hooks = [
    dict(
        type='RampUpHook',
        attribute='auxiliary_head.loss_consistency.loss_weight',
        schedule='exp',
        start=0.0,
        end=lambda_u,
        fraction=0.1,
    ),
    dict(type='TeacherHook', decay=0.99),
    dict(type='IterationSeedHook'),
    dict(type='FreezeHook'),
]
default_hooks = dict(checkpoint=dict(interval=150))
