# A run of minutes on one CPU core (docs/models.md), in the setting of cct_mbv2-jpu_*.
_base_ = [
    '../_base_/models/cct_deeplabv3plus-mbv2.py',
    '../_base_/datasets/idd_lite.py',
    '../_base_/schedules/cct_few_labels.py',
]
train_dataloader = dict(dataset=dict(num_labeled=20))
# half of the positions give the same gradient on average, at three quarters of the time
model = dict(auxiliary_head=dict(position_fraction=0.5))
