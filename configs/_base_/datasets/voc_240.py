# VOC as in the paper's ablation: the longer side to 300 × (0.5 to 2.0), a 240×240 crop.
_base_ = './voc.py'
image_size, crop_size = (300, 300), (240, 240)  # width, height; height, width
train_pipeline = [
    dict(type='LoadImageFromFile'),
    dict(type='LoadAnnotations'),
    dict(type='RandomResize', scale=image_size, ratio_range=(0.5, 2.0), keep_ratio=True),
    dict(type='RandomCrop', crop_size=crop_size),
    dict(type='RandomFlip', prob=0.5),
    dict(type='PackSegInputs'),
]
unlabeled_pipeline = [
    dict(type='LoadImageFromFile'),
    dict(type='RandomResize', scale=image_size, ratio_range=(0.5, 2.0), keep_ratio=True),
    dict(type='RandomCrop', crop_size=crop_size),
    dict(type='RandomFlip', prob=0.5),
    dict(type='PackSegInputs'),
]
train_dataloader = dict(
    dataset=dict(labeled=dict(pipeline=train_pipeline), unlabeled=dict(pipeline=unlabeled_pipeline))
)
