_base_ = './cct_mbv2-jpu_camvid-180x240_50.py'

n_labeled = 100
max_iters = 2400  # more labels take longer to learn

train_dataloader = dict(
    dataset=dict(
        labeled=dict(ann_file=f'{_base_.split_dir}/{n_labeled}_labeled.txt'),
        unlabeled=dict(ann_file=f'{_base_.split_dir}/{n_labeled}_unlabeled.txt'),
    )
)
train_cfg = dict(max_iters=max_iters)
param_scheduler = dict(end=max_iters)
