# VOC with the model of small machines.
_base_ = [
    '../_base_/models/cct_mbv2-jpu.py',
    '../_base_/datasets/voc.py',
    '../_base_/schedules/cct_teacher.py',
    '../_base_/default_runtime.py',
]

n_labeled = 1464
epoch = (10582 - n_labeled) // 10  # one pass over the unlabelled images, ten a step
max_iters = 50 * epoch

train_dataloader = dict(
    dataset=dict(
        labeled=dict(ann_file=f'{_base_.split_dir}/{n_labeled}_labeled.txt'),
        unlabeled=dict(ann_file=f'{_base_.split_dir}/{n_labeled}_unlabeled.txt'),
    )
)
optim_wrapper = dict(
    type='OptimWrapper',
    optimizer=dict(type='AdamW', lr=2e-3, weight_decay=1e-4),
    paramwise_cfg=dict(custom_keys={'backbone.': dict(lr_mult=0.2)}),
)
train_cfg = dict(max_iters=max_iters, val_interval=5 * epoch)
param_scheduler = dict(
    type='PolyLR', power=0.9, eta_min=0.0, begin=0, end=max_iters, by_epoch=False
)
default_hooks = dict(checkpoint=dict(interval=5 * epoch))
