_base_ = [
    '../_base_/models/cct_r50-d8.py',
    '../_base_/datasets/camvid.py',
    '../_base_/schedules/cct_teacher.py',
    '../_base_/schedules/sgd_poly.py',
]
model = dict(
    data_preprocessor=dict(size=_base_.crop_size),
    decode_head=dict(num_classes=11),
    auxiliary_head=dict(num_classes=11, context_classes=_base_.context_classes),
)
train_dataloader = dict(dataset=dict(num_labeled=50))
# 50 epochs over the 317 unlabelled images, 31 iterations each
train_cfg = dict(max_iters=1550, val_interval=155)
param_scheduler = dict(end=1550)
