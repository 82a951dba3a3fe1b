# CCT+: the main decoder also learns from a strong view with CutMix, by the squared error to an EMA
# teacher; CCT's auxiliary decoders see the weak view. The view is calm: no change of hue, no grey.
# Long trainings can drift (docs/cct_plus.md): cct-strong does not.
model = dict(
    type='CCTPlusSegmentor',
    loss_strong=dict(type='ConfidentMSE', loss_weight=1.0),
    cutmix=dict(type='CutMix'),
)
train_dataloader = dict(
    dataset=dict(
        strong_views=dict(
            type='StrongViews',
            num_views=1,
            hue=0.0,
            saturation=0.25,
            gray_prob=0.0,
            blur_sigma=(0.1, 1.0),
        )
    )
)
default_hooks = dict(teacher=dict(type='TeacherHook', decay=0.99))
