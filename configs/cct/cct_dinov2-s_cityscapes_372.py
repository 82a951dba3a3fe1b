_base_ = [
    '../_base_/models/cct_dinov2-s.py',
    '../_base_/datasets/cityscapes.py',
    '../_base_/schedules/cct_teacher.py',
    '../_base_/schedules/adamw_vit.py',
    '../_base_/default_runtime.py',
]

num_classes = 19
context_classes = (
    'road',
    'sidewalk',
    'building',
    'wall',
    'fence',
    'vegetation',
    'terrain',
    'sky',
)
model = dict(
    data_preprocessor=dict(size=(512, 1024)),
    decode_head=dict(num_classes=num_classes),
    auxiliary_head=dict(num_classes=num_classes, context_classes=context_classes),
)

n_labeled = 372
epoch = (2975 - n_labeled) // 4  # one pass over the unlabelled images, four a step
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
