# The loops of a training that counts iterations. A config adds the length: `max_iters` and
# `val_interval` of `train_cfg`, and the `end` of the schedule.
_base_ = '../default_runtime.py'
train_cfg = dict(type='IterBasedTrainLoop')
val_cfg = dict(type='ValLoop')
test_cfg = dict(type='TestLoop')
default_hooks = dict(iteration_seed=dict(type='IterationSeedHook'))
