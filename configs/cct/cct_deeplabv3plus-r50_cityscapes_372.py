_base_ = [
    '../_base_/models/cct_deeplabv3plus-r50-d8.py',
    '../_base_/datasets/cityscapes.py',
    '../_base_/schedules/cct_teacher.py',
    '../_base_/schedules/sgd_poly.py',
]
fcn, bank = _base_.model.auxiliary_head
model = dict(
    data_preprocessor=dict(size=_base_.crop_size),
    decode_head=dict(num_classes=19),
    auxiliary_head=[
        dict(fcn, num_classes=19),
        dict(bank, num_classes=19, context_classes=_base_.context_classes),
    ],
)
train_dataloader = dict(dataset=dict(num_labeled=372))
# 50 passes over the 2603 unlabelled images, 650 iterations each
train_cfg = dict(max_iters=32500, val_interval=3250)
param_scheduler = dict(end=32500)
