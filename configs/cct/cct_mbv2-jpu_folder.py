# Your own data without a GPU: see cct_r50_folder.py.
_base_ = [
    '../_base_/models/cct_mbv2-jpu.py',
    '../_base_/datasets/folder.py',
    '../_base_/schedules/cct_teacher.py',
    '../_base_/schedules/adamw_small.py',
]
classes = ('background', 'crack', 'rust')
model = dict(
    data_preprocessor=dict(size=_base_.crop_size),
    decode_head=dict(num_classes=len(classes)),
    # context: what is not an object
    auxiliary_head=dict(num_classes=len(classes), context_classes=('background',)),
)
train_dataloader = dict(
    dataset=dict(labeled=dict(classes=classes), unlabeled=dict(classes=classes))
)
val_dataloader = dict(dataset=dict(classes=classes))
test_dataloader = val_dataloader
train_cfg = dict(max_iters=4000, val_interval=500)
param_scheduler = dict(end=4000)
