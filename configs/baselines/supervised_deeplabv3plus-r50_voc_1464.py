_base_ = '../cct/cct_deeplabv3plus-r50_voc_1464.py'
model = dict(type='EncoderDecoder', auxiliary_head=_base_.model.auxiliary_head[:1])
train_dataloader = dict(dataset=dict(unlabeled=None))
custom_hooks = [dict(type='IterationSeedHook')]
