_base_ = '../cct/cct_r50_camvid_50.py'
model = dict(
    type='InputVATSegmentor',
    auxiliary_head=None,
    # a tenth of CCT's weight: with all of it VAT on the images loses (docs/results.md)
    loss_consistency=dict(type='KLConsistency', loss_weight=3.0, reference_classes=21),
    epsilon=2.0,
)
custom_hooks = [
    # ω_u
    dict(_base_.custom_hooks[0], attribute='loss_consistency.loss_weight', end=3.0),
    dict(type='IterationSeedHook'),
]
