_base_ = '../cct/cct_r50_camvid_50.py'
model = dict(
    type='InputVATSegmentor',
    auxiliary_head=None,
    loss_consistency=dict(type='KLConsistency', loss_weight=30.0),
    epsilon=2.0,
)
custom_hooks = [
    dict(_base_.custom_hooks[0], attribute='loss_consistency.loss_weight'),  # ω_u
    dict(type='IterationSeedHook'),
]
