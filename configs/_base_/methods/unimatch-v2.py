# UniMatch V2's streams: two strong views share the channels of z, and an EMA teacher labels them;
# L = (L_s + ½ s₁ + ½ s₂) / 2.
_base_ = './fixmatch.py'
strong_views = dict(num_views=2)
method = dict(
    decode_head=dict(loss_decode=dict(loss_weight=0.5)),
    loss_strong=dict(loss_weight=0.5),  # of the mean over the two views
    channel_dropout=dict(type='ComplementaryDropout'),
)
method_hooks = [*_base_.method_hooks, dict(type='TeacherHook', decay=0.996)]
