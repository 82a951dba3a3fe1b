# As cct.py, with the ramp in the auxiliary decoders of every domain.
_base_ = './cct.py'
custom_hooks = [
    dict(
        type='RampUpHook',
        attribute='domains.*.auxiliary_head.loss_consistency.loss_weight',
        schedule='exp',
        start=0.0,
        end=30.0,
        fraction=0.1,
    ),
    dict(type='IterationSeedHook'),
]
