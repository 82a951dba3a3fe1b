# Ten times the learning rate for the auxiliary decoders: in a short training they hardly learn.
_base_ = '../cct/cct_mbv2_camvid_50.py'
optim_wrapper = dict(paramwise_cfg=dict(custom_keys={'auxiliary_head.': dict(lr_mult=10.0)}))
