# UniMatch V2: two strong views share the channels of z, and an EMA teacher labels them;
# L = (L_s + ½ s₁ + ½ s₂) / 2.
_base_ = './fixmatch.py'
model = dict(
    type='UniMatchV2Segmentor',
    supervised_weight=0.5,
    loss_strong=dict(loss_weight=0.5),  # of the mean over the two views
    channel_dropout=dict(type='ComplementaryDropout'),
)
train_dataloader = dict(dataset=dict(strong_views=dict(num_views=2)))
default_hooks = dict(teacher=dict(_delete_=True, type='TeacherHook', decay=0.996))
