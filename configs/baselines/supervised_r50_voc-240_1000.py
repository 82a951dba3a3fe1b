_base_ = '../cct/cct_r50_voc-240_1000.py'
model = dict(type='EncoderDecoder', auxiliary_head=None)
train_dataloader = dict(dataset=dict(unlabeled=None))
custom_hooks = [dict(type='IterationSeedHook')]
