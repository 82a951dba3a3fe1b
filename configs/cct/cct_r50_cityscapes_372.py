_base_ = [
    '../_base_/models/cct_r50-d8.py',
    '../_base_/datasets/cityscapes.py',
    '../_base_/schedules/cct_teacher.py',
    '../_base_/schedules/sgd_poly.py',
]
model = dict(
    data_preprocessor=dict(size=_base_.crop_size),
    decode_head=dict(num_classes=19),
    auxiliary_head=dict(num_classes=19, context_classes=_base_.context_classes),
)
train_dataloader = dict(dataset=dict(num_labeled=372))
# 50 epochs over the 2603 unlabelled images, 650 iterations each
train_cfg = dict(max_iters=32500, val_interval=3250)
param_scheduler = dict(end=32500)
