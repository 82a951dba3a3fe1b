# CCT+ on the field's split, which make_splits.py writes:
#   python tools/make_splits.py --from-unimatch DIR --out data/splits/voc_field
_base_ = ['../cct/cct_upernet-swin-t_voc_1464.py', '../_base_/methods/cct-plus.py']
n_labeled = 92
split_dir = 'data/splits/voc_field'
epoch = (10582 - n_labeled) // 10  # one pass over the unlabelled images, ten a step
max_iters = 50 * epoch

train_dataloader = dict(
    dataset=dict(
        labeled=dict(ann_file=f'{split_dir}/{n_labeled}_labeled.txt'),
        unlabeled=dict(
            ann_file=f'{split_dir}/{n_labeled}_unlabeled.txt',
            pipeline=[*_base_.unlabeled_pipeline, _base_.strong_views],
        ),
    )
)
model = _base_.method
custom_hooks = _base_.method_hooks
train_cfg = dict(max_iters=max_iters, val_interval=5 * epoch)
linear, poly = _base_.param_scheduler
param_scheduler = [linear, dict(poly, end=max_iters)]
default_hooks = dict(checkpoint=dict(interval=5 * epoch))
