_base_ = './cct_r50_cityscapes-camvid_50.py'

n_labeled = 100
# one pass over the unlabelled images of Cityscapes, and as many iterations of CamVid
epoch = 2 * ((2975 - n_labeled) // _base_.batch_size)
max_iters = 50 * epoch

train_dataloader = dict(
    dataset=dict(
        domains={
            name: {
                branch: dict(ann_file=f'{folder}/{n_labeled}_{branch}.txt')
                for branch in ('labeled', 'unlabeled')
            }
            for name, folder in _base_.split_dirs.items()
        }
    )
)
train_cfg = dict(max_iters=max_iters, val_interval=5 * epoch)
param_scheduler = dict(end=max_iters)
default_hooks = dict(checkpoint=dict(interval=5 * epoch))
