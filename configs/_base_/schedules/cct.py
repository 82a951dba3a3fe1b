# The loops and the ramp of ω_u. A config adds `max_iters` and `val_interval` to `train_cfg`.
train_cfg = dict(type='IterBasedTrainLoop')
val_cfg = dict(type='ValLoop')
test_cfg = dict(type='TestLoop')

custom_hooks = [
    # ω_u: exp ramp from 0 to λ_u = 30 over the first tenth of the training
    dict(
        type='RampUpHook',
        attribute='auxiliary_head.loss_consistency.loss_weight',
        schedule='exp',
        start=0.0,
        end=30.0,
        fraction=0.1,
    ),
    dict(type='IterationSeedHook'),
]
