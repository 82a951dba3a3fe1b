_base_ = '../cct/cct_segformer-mit-b2_cityscapes_372.py'
model = dict(type='EncoderDecoder', auxiliary_head=None)
train_dataloader = dict(dataset=dict(unlabeled=None))
custom_hooks = [dict(type='IterationSeedHook')]
