_base_ = [
    '../_base_/models/cct_r50-d8.py',
    '../_base_/datasets/voc.py',
    '../_base_/schedules/cct.py',
    '../_base_/schedules/sgd_poly.py',
]
model = dict(
    data_preprocessor=dict(size=_base_.crop_size),
    decode_head=dict(num_classes=21),
    auxiliary_head=dict(num_classes=21, context_classes=_base_.context_classes),
)
train_dataloader = dict(dataset=dict(num_labeled=1464))
# 50 epochs over the 9118 unlabelled images, 911 iterations each
train_cfg = dict(max_iters=45550, val_interval=4555)
param_scheduler = dict(end=45550)
