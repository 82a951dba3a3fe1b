# CCT+: the main decoder also learns from a strong view with CutMix, by the squared error to an EMA
# teacher; CCT's auxiliary decoders see the weak view. The view is calm: no other hues, no grey.
strong_views = dict(
    type='StrongViews',
    num_views=1,
    hue=0.0,
    saturation=0.25,
    gray_prob=0.0,
    blur_sigma=(0.1, 1.0),
)
method = dict(
    type='CCTPlusSegmentor',
    loss_strong=dict(type='ConfidentMSE', loss_weight=1.0),
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
