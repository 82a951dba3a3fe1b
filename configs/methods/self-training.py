# The supervised baseline that also learns the masks of a preview (--weak-masks), on the mild strong
# view of cct-strong with CutMix.
model = dict(
    type='SelfTrainingSegmentor',
    auxiliary_head=None,
    loss_strong=dict(type='ConfidentCrossEntropy'),
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
default_hooks = dict(teacher=None)
