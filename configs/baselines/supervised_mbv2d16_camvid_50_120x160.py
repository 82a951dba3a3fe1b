_base_ = '../cct/cct_mbv2d16_camvid_50_120x160.py'
model = dict(type='EncoderDecoder', auxiliary_head=None)
train_dataloader = dict(dataset=dict(unlabeled=None))
custom_hooks = [dict(type='IterationSeedHook')]
