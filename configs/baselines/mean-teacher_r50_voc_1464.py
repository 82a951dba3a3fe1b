_base_ = '../cct/cct_r50_voc_1464.py'
model = dict(
    type='MeanTeacherSegmentor',
    auxiliary_head=None,
    loss_consistency=dict(type='MSEConsistency', loss_weight=30.0, reference_classes=21),
)
custom_hooks = [
    dict(_base_.custom_hooks[0], attribute='loss_consistency.loss_weight'),  # ω_u
    dict(type='IterationSeedHook'),
    dict(type='TeacherHook', decay=0.999, evaluate='teacher', batch_statistics=True),
]
