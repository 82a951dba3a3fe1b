# Your own data: put the folders where _base_/datasets/folder.py says, and name the classes here,
# or in a config on top of this one: data sets, heads and metrics take them from the top level.
_base_ = [
    '../_base_/models/cct_r50-d8.py',
    '../_base_/datasets/folder.py',
    '../_base_/schedules/cct_teacher.py',
    '../_base_/schedules/sgd_poly.py',
]
classes = ('background', 'crack', 'rust')
context_classes = ('background',)  # what is not an object
train_cfg = dict(max_iters=20000, val_interval=2000)
