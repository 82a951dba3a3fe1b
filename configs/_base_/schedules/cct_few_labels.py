# Runs of minutes on one CPU core, with few labels: a high rate, an EMA teacher, and the first
# stages of a MobileNetV2 as ImageNet left them.
_base_ = ['./cct.py', './adamw.py']
max_iters = 1200
train_cfg = dict(max_iters=max_iters, val_interval=300)
# 3e-3, for the backbone 1.2e-3
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
param_scheduler = dict(
    type='PolyLR', power=0.9, eta_min=0.0, begin=0, end=max_iters, by_epoch=False
)
custom_hooks = [
    dict(
        type='RampUpHook',
        attribute='auxiliary_head.loss_consistency.loss_weight',
        schedule='exp',
        start=0.0,
        end=30.0,
        fraction=0.1,
    ),
    dict(type='TeacherHook', decay=0.99),
    dict(type='IterationSeedHook'),
    # the same training in less time
    dict(type='FreezeHook'),
]
