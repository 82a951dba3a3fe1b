_base_ = '../cct/cct_dinov3-s_folder.py'
model = dict(type='EncoderDecoder', auxiliary_head=None)
train_dataloader = dict(dataset=dict(unlabeled=None))
custom_hooks = [dict(type='IterationSeedHook')]
