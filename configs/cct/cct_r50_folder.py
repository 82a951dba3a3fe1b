# Your own data: put the folders where _base_/datasets/folder.py says, and name the classes here,
# or in a config on top of this one: data sets, heads and metrics take them from the top level.
_base_ = [
    '../_base_/models/cct_r50-d8.py',
    '../_base_/datasets/folder.py',
    '../_base_/schedules/cct.py',
    '../_base_/schedules/sgd_poly.py',
    '../_base_/default_runtime.py',
]

classes = ('background', 'crack', 'rust')
context_classes = ('background',)  # what is not an object
max_iters = 20000

train_cfg = dict(max_iters=max_iters, val_interval=2000)
param_scheduler = dict(end=max_iters)
default_hooks = dict(checkpoint=dict(interval=2000))
custom_hooks = [
    dict(
        type='RampUpHook',
        attribute='auxiliary_head.loss_consistency.loss_weight',
        schedule='exp',
        start=0.0,
        end=30.0,
        fraction=0.1,
    ),
    # the targets of the unlabelled images: its own would mislead the student
    dict(type='TeacherHook', decay=0.99),
    dict(type='IterationSeedHook'),
]
