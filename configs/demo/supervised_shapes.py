_base_ = './cct_shapes.py'
model = dict(type='EncoderDecoder', auxiliary_head=None)
train_dataloader = dict(dataset=dict(unlabeled=None))
# its own best rate of 2e-3, 5e-3 and 1e-2
optim_wrapper = dict(optimizer=dict(lr=1e-2))
custom_hooks = [dict(type='IterationSeedHook')]
