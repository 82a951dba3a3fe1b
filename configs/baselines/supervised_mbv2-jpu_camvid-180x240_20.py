_base_ = '../cct/cct_mbv2-jpu_camvid-180x240_20.py'
model = dict(type='EncoderDecoder', auxiliary_head=None)
train_dataloader = dict(dataset=dict(unlabeled=None))
custom_hooks = [
    dict(type='IterationSeedHook'),
    dict(type='FreezeHook'),
]
