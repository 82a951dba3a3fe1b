# Small enough for two CPU cores.
_base_ = [
    '../_base_/models/cct_mbv2-d8.py',
    '../_base_/datasets/camvid_168x224.py',
    '../_base_/schedules/cct_teacher.py',
    '../_base_/schedules/sgd_poly.py',
    '../_base_/default_runtime.py',
]

model = dict(
    data_preprocessor=dict(size=(168, 224)),
    decode_head=dict(num_classes=11),
    auxiliary_head=dict(
        num_classes=11, context_classes=('Sky', 'Building', 'Road', 'Pavement', 'Tree', 'Fence')
    ),
)

n_labeled = 50
max_iters = 1000

train_dataloader = dict(
    dataset=dict(
        labeled=dict(ann_file=f'{_base_.split_dir}/{n_labeled}_labeled.txt'),
        unlabeled=dict(ann_file=f'{_base_.split_dir}/{n_labeled}_unlabeled.txt'),
    )
)
train_cfg = dict(max_iters=max_iters, val_interval=250)
param_scheduler = dict(end=max_iters)
default_hooks = dict(checkpoint=dict(interval=250))
