# FixMatch: hard pseudo labels of the weak view at confidence 0.95, on one strong view with CutMix.
model = dict(
    type='FixMatchSegmentor',
    auxiliary_head=None,
    loss_strong=dict(type='ConfidentCrossEntropy', loss_weight=1.0, threshold=0.95),
    cutmix=dict(type='CutMix'),
)
train_dataloader = dict(dataset=dict(strong_views=dict(type='StrongViews', num_views=1)))
default_hooks = dict(teacher=None)
