# A base for studies on CamVid, at output stride 8: a run of minutes on one CPU core.
_base_ = [
    '../_base_/models/cct_mbv2-d8.py',
    '../_base_/datasets/camvid_120x160.py',
    '../_base_/schedules/cct.py',
    '../_base_/schedules/sgd_poly.py',
    '../_base_/default_runtime.py',
]

model = dict(
    data_preprocessor=dict(size=(120, 160)),
    decode_head=dict(num_classes=11),
    auxiliary_head=dict(
        num_classes=11, context_classes=('Sky', 'Building', 'Road', 'Pavement', 'Tree', 'Fence')
    ),
)

n_labeled = 50
max_iters = 300

train_dataloader = dict(
    dataset=dict(
        labeled=dict(ann_file=f'{_base_.split_dir}/{n_labeled}_labeled.txt'),
        unlabeled=dict(ann_file=f'{_base_.split_dir}/{n_labeled}_unlabeled.txt'),
    )
)
train_cfg = dict(max_iters=max_iters, val_interval=100)
param_scheduler = dict(end=max_iters)
default_hooks = dict(checkpoint=dict(interval=100))
