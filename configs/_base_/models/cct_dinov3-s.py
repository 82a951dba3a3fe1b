# DINOv3's ViT-S/16, otherwise like cct_dinov2-s.py; it needs timm 1.0.20 or newer.
_base_ = './cct_dinov2-s.py'
model = dict(backbone=dict(model_name='vit_small_patch16_dinov3.lvd1689m'))
