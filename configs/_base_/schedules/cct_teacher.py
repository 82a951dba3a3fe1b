# As cct.py, with the targets of an EMA teacher: for what is no reproduction of the paper
# (docs/when_cct_gains.md).
_base_ = './cct.py'
custom_hooks = [
    dict(
        type='RampUpHook',
        attribute='auxiliary_head.loss_consistency.loss_weight',
        schedule='exp',
        start=0.0,
        end=30.0,
        fraction=0.1,
    ),
    dict(type='IterationSeedHook'),
    # the network's own targets would mislead it
    dict(type='TeacherHook', decay=0.99),
]
