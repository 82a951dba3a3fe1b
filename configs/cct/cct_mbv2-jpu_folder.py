# Your own data without a GPU: see cct_r50_folder.py.
_base_ = [
    '../_base_/models/cct_mbv2-jpu.py',
    '../_base_/datasets/folder.py',
    '../_base_/schedules/cct_teacher.py',
    '../_base_/default_runtime.py',
]

classes = ('background', 'crack', 'rust')
context_classes = ('background',)  # what is not an object
max_iters = 4000

optim_wrapper = dict(
    type='OptimWrapper',
    optimizer=dict(type='AdamW', lr=2e-3, weight_decay=1e-4),
    paramwise_cfg=dict(custom_keys={'backbone.': dict(lr_mult=0.2)}),
)
train_cfg = dict(max_iters=max_iters, val_interval=500)
param_scheduler = dict(
    type='PolyLR', power=0.9, eta_min=0.0, begin=0, end=max_iters, by_epoch=False
)
default_hooks = dict(checkpoint=dict(interval=500))
