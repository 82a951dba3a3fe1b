# A run of minutes on one CPU core (docs/models.md), in the setting of cct_mbv2-jpu_*.
_base_ = [
    '../_base_/models/cct_deeplabv3plus-mbv2.py',
    '../_base_/datasets/idd_lite_112x160.py',
    '../_base_/schedules/cct.py',
    '../_base_/schedules/adamw.py',
    '../_base_/default_runtime.py',
]

lambda_u = 30.0 * 7 / 21  # the MSE is a mean over classes: 30 belongs to the 21 of VOC
model = dict(
    data_preprocessor=dict(size=(112, 160)),
    decode_head=dict(num_classes=7),
    auxiliary_head=dict(
        num_classes=7,
        context_classes=('drivable', 'non-drivable', 'far object', 'sky'),
        # half of the positions give the same gradient on average, at three quarters of the time
        position_fraction=0.5,
        loss_consistency=dict(loss_weight=lambda_u),
    ),
)

n_labeled = 20
max_iters = 600

train_dataloader = dict(
    dataset=dict(
        labeled=dict(ann_file=f'{_base_.split_dir}/{n_labeled}_labeled.txt'),
        unlabeled=dict(ann_file=f'{_base_.split_dir}/{n_labeled}_unlabeled.txt'),
    )
)
# 3e-3, for the backbone 1.2e-3; its first stages keep the weights of ImageNet
optim_wrapper = dict(
    optimizer=dict(lr=1.2e-3),
    paramwise_cfg=dict(
        custom_keys={
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
    # the same training in less time
    dict(type='FreezeHook'),
]
default_hooks = dict(checkpoint=dict(interval=150))
