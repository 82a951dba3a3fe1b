# The setting of the paper's ablation on VOC: the longer side to 300 × (0.5 to 2.0), a 240×240 crop.
_base_ = [
    '../_base_/models/cct_r50-d8.py',
    '../_base_/datasets/voc_240.py',
    '../_base_/schedules/cct.py',
    '../_base_/schedules/sgd_poly.py',
]
model = dict(
    data_preprocessor=dict(size=_base_.crop_size),
    decode_head=dict(num_classes=21),
    auxiliary_head=dict(num_classes=21, context_classes=_base_.context_classes),
)
train_dataloader = dict(dataset=dict(num_labeled=500))
# 50 epochs over the 10082 unlabelled images, 1008 iterations each
train_cfg = dict(max_iters=50400, val_interval=5040)
param_scheduler = dict(end=50400)
