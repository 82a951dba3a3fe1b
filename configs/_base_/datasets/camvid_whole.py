# CamVid as in the paper: whole images of 360×480, without augmentation.
_base_ = './camvid.py'
image_size, crop_size = (480, 360), (360, 480)  # width, height; height, width
train_pipeline = [
    dict(type='LoadImageFromFile'),
    dict(type='LoadAnnotations'),
    dict(type='Resize', scale=image_size, keep_ratio=False),  # for images of another size
    dict(type='PackSegInputs'),
]
unlabeled_pipeline = [
    dict(type='LoadImageFromFile'),
    dict(type='Resize', scale=image_size, keep_ratio=False),
    dict(type='PackSegInputs'),
]
train_dataloader = dict(
    dataset=dict(labeled=dict(pipeline=train_pipeline), unlabeled=dict(pipeline=unlabeled_pipeline))
)
