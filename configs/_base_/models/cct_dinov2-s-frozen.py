# DINOv2's ViT-S/14 as it was pretrained: only neck and decoders are trained.
_base_ = './cct_dinov2-s.py'
model = dict(backbone=dict(frozen=True))
