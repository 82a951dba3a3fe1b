# DINOv2's ViT-B/14, otherwise like cct_dinov2-s.py.
_base_ = './cct_dinov2-s.py'
model = dict(
    backbone=dict(model_name='vit_base_patch14_dinov2.lvd142m'),
    neck=dict(in_channels=(768, 768, 768, 768)),
)
