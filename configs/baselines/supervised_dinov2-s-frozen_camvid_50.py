_base_ = '../cct/cct_dinov2-s-frozen_camvid_50.py'
model = dict(type='EncoderDecoder', auxiliary_head=None)
train_dataloader = dict(dataset=dict(unlabeled=None))
custom_hooks = [dict(type='IterationSeedHook')]
