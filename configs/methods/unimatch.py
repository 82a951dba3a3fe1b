# UniMatch: two strong views, and the weak z without half of its channels;
# L = (L_s + ¼ s₁ + ¼ s₂ + ½ f) / 2.
_base_ = './fixmatch.py'
model = dict(
    type='UniMatchSegmentor',
    supervised_weight=0.5,
    loss_strong=dict(loss_weight=0.25),  # of the mean over the two views
    feature_weight=0.25,
)
train_dataloader = dict(dataset=dict(strong_views=dict(num_views=2)))
