# Small enough for one CPU core.
_base_ = [
    '../_base_/models/cct_mbv2-jpu.py',
    '../_base_/datasets/idd_lite_112x160.py',
    '../_base_/schedules/cct.py',
    '../_base_/schedules/adamw.py',
    '../_base_/default_runtime.py',
]

model = dict(
    data_preprocessor=dict(size=(112, 160)),
    # few classes: the paper's C channels are too narrow
    decode_head=dict(num_classes=7, channels=32),
    auxiliary_head=dict(
        num_classes=7,
        channels=32,
        context_classes=('drivable', 'non-drivable', 'far object', 'sky'),
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
# 3e-3 for all but the backbone
optim_wrapper = dict(
    optimizer=dict(lr=1e-3),
    paramwise_cfg=dict(custom_keys={'neck.': dict(lr_mult=3.0), 'head.': dict(lr_mult=3.0)}),
)
train_cfg = dict(max_iters=max_iters, val_interval=250)
param_scheduler = dict(
    type='PolyLR', power=0.9, eta_min=0.0, begin=0, end=max_iters, by_epoch=False
)
default_hooks = dict(checkpoint=dict(interval=250))
