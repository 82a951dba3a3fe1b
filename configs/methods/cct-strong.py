# CCT whose auxiliary decoders see a strong view with CutMix, by the prediction of an EMA teacher;
# the main decoder learns only from labels. The view is mild: no change of hue, no grey.
model = dict(type='CCTStrongSegmentor', cutmix=dict(type='CutMix'))
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
