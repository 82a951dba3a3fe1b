_base_ = '../cct/cct_upernet-swin-t_camvid_50.py'
model = dict(type='EncoderDecoder', auxiliary_head=_base_.model.auxiliary_head[:1])
train_dataloader = dict(dataset=dict(unlabeled=None))
custom_hooks = [dict(type='IterationSeedHook')]
