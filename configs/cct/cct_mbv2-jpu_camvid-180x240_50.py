# The setting of cct_mbv2-jpu_idd-lite_50.py on CamVid: a run of minutes on one CPU core.
_base_ = [
    '../_base_/models/cct_mbv2-jpu.py',
    '../_base_/datasets/camvid_180x240.py',
    '../_base_/schedules/cct_few_labels.py',
    '../_base_/default_runtime.py',
]

model = dict(
    data_preprocessor=dict(size=_base_.crop_size),
    decode_head=dict(num_classes=11, norm_cfg=None),
    auxiliary_head=dict(
        num_classes=11,
        context_classes=('Sky', 'Building', 'Road', 'Pavement', 'Tree', 'Fence'),
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
