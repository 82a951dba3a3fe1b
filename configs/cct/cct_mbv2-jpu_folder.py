# Your own data without a GPU: see cct_r50_folder.py.
_base_ = [
    '../_base_/models/cct_mbv2-jpu.py',
    '../_base_/datasets/folder.py',
    '../_base_/schedules/cct_teacher.py',
    '../_base_/schedules/adamw_small.py',
]
classes = ('background', 'crack', 'rust')
context_classes = ('background',)  # what is not an object
train_cfg = dict(max_iters=4000, val_interval=500)
