# A run of minutes on one CPU core (docs/experiments.md), in the setting of cct_mbv2-jpu_*.
_base_ = [
    '../_base_/models/cct_deeplabv3plus-mbv2.py',
    '../_base_/datasets/idd_lite.py',
    '../_base_/schedules/cct_few_labels.py',
]
train_dataloader = dict(dataset=dict(num_labeled=20))
model = dict(
    data_preprocessor=dict(size=_base_.crop_size),
    decode_head=dict(num_classes=7),
    auxiliary_head=dict(
        num_classes=7,
        context_classes=_base_.context_classes,
        # half of the positions give the same gradient on average, at three quarters of the time
        position_fraction=0.5,
    ),
)
