_base_ = './cct_mbv2-jpu_camvid-180x240_50.py'

n_labeled = 20

train_dataloader = dict(
    dataset=dict(
        labeled=dict(ann_file=f'{_base_.split_dir}/{n_labeled}_labeled.txt'),
        unlabeled=dict(ann_file=f'{_base_.split_dir}/{n_labeled}_unlabeled.txt'),
    )
)
