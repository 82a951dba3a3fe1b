# Your own data: see cct_r50_folder.py.
_base_ = [
    '../_base_/models/cct_segformer-mit-b2.py',
    '../_base_/datasets/folder.py',
    '../_base_/schedules/cct_teacher.py',
    '../_base_/schedules/adamw.py',
    '../_base_/default_runtime.py',
]

classes = ('background', 'crack', 'rust')
context_classes = ('background',)  # what is not an object
max_iters = 20000
warm_up = 1500

train_cfg = dict(max_iters=max_iters, val_interval=2000)
param_scheduler = [
    dict(type='LinearLR', start_factor=1e-6, begin=0, end=warm_up, by_epoch=False),
    dict(type='PolyLR', power=1.0, eta_min=0.0, begin=warm_up, end=max_iters, by_epoch=False),
]
default_hooks = dict(checkpoint=dict(interval=2000))
