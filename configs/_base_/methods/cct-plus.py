# CCT+: one strong view through the main decoder, CutMix, an EMA teacher, and CCT's auxiliary
# decoders on the weak view, whose agreement weighs the pseudo labels.
strong_views = dict(type='StrongViews', num_views=1)
method = dict(
    type='CCTPlusSegmentor',
    auxiliary_head=dict(position_fraction=1.0),  # the gate weighs every pixel
    loss_strong=dict(
        type='ConfidentCrossEntropy',
        loss_weight=1.0,
        threshold=0.8,
        gate=dict(type='AgreementGate'),
    ),
    cutmix=dict(type='CutMix'),
)
# logs on val whether confidence and agreement tell right pixels from wrong ones
calibration = dict(type='CalibrationHook')
# for a config without a λ_u and a teacher of its own
method_hooks = [
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
    dict(type='TeacherHook', decay=0.99),
    calibration,
]
