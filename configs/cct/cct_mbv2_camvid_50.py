# Small enough for two CPU cores.
_base_ = [
    '../_base_/models/cct_mbv2-d8.py',
    '../_base_/datasets/camvid_168x224.py',
    '../_base_/schedules/cct_teacher.py',
    '../_base_/schedules/sgd_poly.py',
]
model = dict(
    data_preprocessor=dict(size=_base_.crop_size),
    decode_head=dict(num_classes=11),
    auxiliary_head=dict(num_classes=11, context_classes=_base_.context_classes),
)
train_dataloader = dict(dataset=dict(num_labeled=50))
train_cfg = dict(max_iters=1000, val_interval=250)
param_scheduler = dict(end=1000)
