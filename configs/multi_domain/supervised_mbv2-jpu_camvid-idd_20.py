_base_ = './cct_mbv2-jpu_camvid-idd_20.py'
model = dict(auxiliary_head=None)
train_dataloader = dict(
    dataset=dict(domains={name: dict(unlabeled=None) for name in _base_.split_dirs})
)
custom_hooks = [dict(type='IterationSeedHook'), dict(type='FreezeHook')]
