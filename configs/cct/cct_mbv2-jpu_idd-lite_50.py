# A run of minutes on one CPU core, in which CCT gains (docs/results.md): an undilated encoder, few
# labels, a high rate, and the three settings that mend CCT for few classes.
_base_ = [
    '../_base_/models/cct_mbv2-jpu.py',
    '../_base_/datasets/idd_lite.py',
    '../_base_/schedules/cct_few_labels.py',
    '../_base_/default_runtime.py',
]

model = dict(
    data_preprocessor=dict(size=_base_.crop_size),
    decode_head=dict(num_classes=7, norm_cfg=None),
    auxiliary_head=dict(
        num_classes=7,
        context_classes=('drivable', 'non-drivable', 'far object', 'sky'),
        # half of the positions give the same gradient on average, at three quarters of the time
        position_fraction=0.5,
    ),
)

n_labeled = 50

train_dataloader = dict(
    dataset=dict(
        labeled=dict(ann_file=f'{_base_.split_dir}/{n_labeled}_labeled.txt'),
        unlabeled=dict(ann_file=f'{_base_.split_dir}/{n_labeled}_unlabeled.txt'),
    )
)
default_hooks = dict(checkpoint=dict(interval=300))
