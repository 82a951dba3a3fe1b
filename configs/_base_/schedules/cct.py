# The loops, and the hooks of CCT by name: a config or a method changes or removes (None) one.
# A config adds the length: `epochs`, or `max_iters` and `val_interval` of `train_cfg`.
_base_ = '../default_runtime.py'
train_cfg = dict(type='IterBasedTrainLoop')
val_cfg = dict(type='ValLoop')
test_cfg = dict(type='TestLoop')

default_hooks = dict(
    # ω_u: exp ramp from 0 to the model's λ_u over the first tenth of the training
    ramp_up=dict(
        type='RampUpHook',
        attribute='auxiliary_head.loss_consistency.loss_weight',
        schedule='exp',
        fraction=0.1,
    ),
    iteration_seed=dict(type='IterationSeedHook'),
)
