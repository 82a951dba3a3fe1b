# ResNet-18 with a 3×3 stem at output stride 8, with a z of 128 channels.
_base_ = './cct_r50-d8.py'
model = dict(
    backbone=dict(depth=18, init_cfg=dict(checkpoint='open-mmlab://resnet18_v1c')),
    neck=dict(in_channels=512, channels=128),
    decode_head=dict(in_channels=128),
    auxiliary_head=dict(in_channels=128),
)
