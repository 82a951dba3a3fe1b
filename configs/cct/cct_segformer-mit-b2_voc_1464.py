_base_ = [
    '../_base_/models/cct_segformer-mit-b2.py',
    '../_base_/datasets/voc.py',
    '../_base_/schedules/cct_teacher.py',
    '../_base_/schedules/adamw.py',
    '../_base_/default_runtime.py',
]

n_labeled = 1464
epoch = (10582 - n_labeled) // 10  # one pass over the unlabelled images, ten a step
max_iters = 50 * epoch
warm_up = 1500

train_dataloader = dict(
    dataset=dict(
        labeled=dict(ann_file=f'{_base_.split_dir}/{n_labeled}_labeled.txt'),
        unlabeled=dict(ann_file=f'{_base_.split_dir}/{n_labeled}_unlabeled.txt'),
    )
)
train_cfg = dict(max_iters=max_iters, val_interval=5 * epoch)
param_scheduler = [
    dict(type='LinearLR', start_factor=1e-6, begin=0, end=warm_up, by_epoch=False),
    dict(type='PolyLR', power=1.0, eta_min=0.0, begin=warm_up, end=max_iters, by_epoch=False),
]
default_hooks = dict(checkpoint=dict(interval=5 * epoch))
