# A run of minutes on one CPU core, in which CCT gains (docs/results.md): an undilated encoder, few
# labels, a high rate, and the three settings that make CCT work with few classes.
_base_ = [
    '../_base_/models/cct_mbv2-jpu.py',
    '../_base_/datasets/idd_lite.py',
    '../_base_/schedules/cct_few_labels.py',
]
train_dataloader = dict(dataset=dict(num_labeled=20))
model = dict(
    decode_head=dict(norm_cfg=None),
    # half of the positions give the same gradient on average, at three quarters of the time
    auxiliary_head=dict(position_fraction=0.5),
)
