# Your own data: put the folders where _base_/datasets/folder.py says, and name the classes here.
_base_ = [
    '../_base_/models/cct_r50-d8.py',
    '../_base_/datasets/folder.py',
    '../_base_/schedules/cct_teacher.py',
    '../_base_/schedules/sgd_poly.py',
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
train_cfg = dict(max_iters=20000, val_interval=2000)
param_scheduler = dict(end=20000)
