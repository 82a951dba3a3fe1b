_base_ = '../cct/cct-abce_r50_camvid_50.py'
model = dict(type='EncoderDecoder', auxiliary_head=None)
train_dataloader = dict(dataset=dict(unlabeled=None))
custom_hooks = [
    dict(type='IterationSeedHook'),
    _base_.custom_hooks[-1],  # the ramp of η
]
