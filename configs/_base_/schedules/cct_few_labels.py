# Runs of minutes on one CPU core, with few labels: a high rate, an EMA teacher, and the first
# stages of a MobileNetV2 frozen as pretrained.
_base_ = ['./cct_teacher.py', './adamw.py']
train_cfg = dict(max_iters=1200, val_interval=300)
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
param_scheduler = dict(power=0.9, end=1200)
# the same training in less time
default_hooks = dict(freeze=dict(type='FreezeHook'))
