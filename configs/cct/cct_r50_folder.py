# Your own data: put the folders where _base_/datasets/folder.py says, and name the classes here,
# or in a config on top of this one: data sets, heads and metrics take them from the top level.
_base_ = [
    '../_base_/models/cct_r50-d8.py',
    '../_base_/datasets/folder.py',
    '../_base_/schedules/cct_teacher.py',
    '../_base_/schedules/sgd_poly.py',
    '../_base_/default_runtime.py',
]

classes = ('background', 'crack', 'rust')
context_classes = ('background',)  # what is not an object
max_iters = 20000

train_cfg = dict(max_iters=max_iters, val_interval=2000)
param_scheduler = dict(end=max_iters)
default_hooks = dict(checkpoint=dict(interval=2000))
