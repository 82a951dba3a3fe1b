_base_ = [
    '../_base_/models/cct_timm-regnety.py',
    '../_base_/datasets/voc.py',
    '../_base_/schedules/cct_teacher.py',
    '../_base_/schedules/sgd_poly.py',
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
train_cfg = dict(max_iters=max_iters, val_interval=5 * epoch)
param_scheduler = dict(end=max_iters)
default_hooks = dict(checkpoint=dict(interval=5 * epoch))
