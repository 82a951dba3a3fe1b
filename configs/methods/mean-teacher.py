# Mean Teacher: the images' predictions follow those of an EMA teacher, which is evaluated.
# Weight and ramp are CCT's.
model = dict(
    type='MeanTeacherSegmentor',
    auxiliary_head=None,
    loss_consistency=dict(type='MSEConsistency', loss_weight=30.0, reference_classes=21),
)
default_hooks = dict(
    ramp_up=dict(attribute='loss_consistency.loss_weight'),
    teacher=dict(type='TeacherHook', decay=0.99, evaluate='teacher', batch_statistics=True),
)
