# The baseline: only the labelled images, in the same order and for as many iterations.
model = dict(type='EncoderDecoder', auxiliary_head=None)
train_dataloader = dict(dataset=dict(unlabeled=None, strong_views=None))
default_hooks = dict(teacher=None)
