_base_ = './cct_r50_cityscapes-camvid_100.py'
model = dict(auxiliary_head=None)
train_dataloader = dict(
    dataset=dict(domains={name: dict(unlabeled=None) for name in _base_.split_dirs})
)
custom_hooks = [dict(type='IterationSeedHook')]
