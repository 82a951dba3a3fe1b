# Your own data: see cct_r50_folder.py.
_base_ = [
    '../_base_/models/cct_dinov2-s.py',
    '../_base_/datasets/folder.py',
    '../_base_/schedules/cct_teacher.py',
    '../_base_/schedules/adamw_vit.py',
    '../_base_/default_runtime.py',
]

classes = ('background', 'crack', 'rust')
context_classes = ('background',)  # what is not an object
max_iters = 20000

train_cfg = dict(max_iters=max_iters, val_interval=2000)
param_scheduler = dict(end=max_iters)
default_hooks = dict(checkpoint=dict(interval=2000))
