# A run of minutes on one CPU core (docs/models.md), in the setting of cct_mbv2-jpu_*.
_base_ = [
    '../_base_/models/cct_deeplabv3plus-mbv2.py',
    '../_base_/datasets/idd_lite.py',
    '../_base_/schedules/cct_few_labels.py',
    '../_base_/default_runtime.py',
]

model = dict(
    data_preprocessor=dict(size=_base_.crop_size),
    decode_head=dict(num_classes=7),
    auxiliary_head=dict(
        num_classes=7,
        context_classes=('drivable', 'non-drivable', 'far object', 'sky'),
        # half of the positions give the same gradient on average, at three quarters of the time
        position_fraction=0.5,
    ),
)

n_labeled = 20

train_dataloader = dict(
    dataset=dict(
        labeled=dict(ann_file=f'{_base_.split_dir}/{n_labeled}_labeled.txt'),
        unlabeled=dict(ann_file=f'{_base_.split_dir}/{n_labeled}_unlabeled.txt'),
    )
)
default_hooks = dict(checkpoint=dict(interval=300))
