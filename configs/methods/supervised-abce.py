# The baseline of cct-abce.
_base_ = './cct-abce.py'
model = dict(type='EncoderDecoder', auxiliary_head=None)
train_dataloader = dict(dataset=dict(unlabeled=None, strong_views=None))
default_hooks = dict(teacher=None)
