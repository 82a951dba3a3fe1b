_base_ = './cct_mbv2_camvid_50_abce.py'
model = dict(type='EncoderDecoder', auxiliary_head=None)
train_dataloader = dict(dataset=dict(unlabeled=None))
custom_hooks = _base_.custom_hooks[1:]  # without the ramp of ω_u
