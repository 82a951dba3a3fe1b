# The paper's ablation on VOC.
_base_ = './cct_r50_voc-240_500.py'

n_labeled = 1000
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
