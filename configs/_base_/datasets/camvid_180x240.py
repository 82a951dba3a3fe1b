# CamVid at half its size, for many runs on a CPU: trained on crops of 120×160 of images scaled by
# 0.7 to 2, tested on whole images. Eight labelled and eight unlabelled images per step.
_base_ = './camvid.py'
image_size, crop_size = (240, 180), (120, 160)  # width, height; height, width
train_pipeline = [
    dict(type='LoadImageFromFile'),
    dict(type='LoadAnnotations'),
    dict(type='RandomResize', scale=image_size, ratio_range=(0.7, 2.0), keep_ratio=True),
    # the first of ten draws in which no class fills more than three quarters
    dict(type='RandomCrop', crop_size=crop_size, cat_max_ratio=0.75),
    dict(type='RandomFlip', prob=0.5),
    dict(type='PackSegInputs'),
]
unlabeled_pipeline = [
    dict(type='LoadImageFromFile'),
    dict(type='RandomResize', scale=image_size, ratio_range=(0.7, 2.0), keep_ratio=True),
    dict(type='RandomCrop', crop_size=crop_size),
    dict(type='RandomFlip', prob=0.5),
    dict(type='PackSegInputs'),
]
test_pipeline = [
    dict(type='LoadImageFromFile'),
    dict(type='Resize', scale=image_size, keep_ratio=False),
    dict(type='LoadAnnotations'),
    dict(type='PackSegInputs'),
]
tta_pipeline = [
    dict(type='LoadImageFromFile'),
    dict(
        type='TestTimeAug',
        transforms=[
            [
                dict(type='Resize', scale=(int(240 * scale), int(180 * scale)), keep_ratio=False)
                for scale in (0.5, 0.75, 1.0, 1.25, 1.5)
            ],
            [dict(type='RandomFlip', prob=0.0), dict(type='RandomFlip', prob=1.0)],
            [dict(type='LoadAnnotations')],
            [dict(type='PackSegInputs')],
        ],
    ),
]
train_dataloader = dict(
    batch_size=8,
    num_workers=2,
    dataset=dict(
        labeled=dict(pipeline=train_pipeline), unlabeled=dict(pipeline=unlabeled_pipeline)
    ),
)
auto_scale_lr = dict(base_batch_size=8)
val_dataloader = dict(dataset=dict(pipeline=test_pipeline))
test_dataloader = dict(dataset=dict(pipeline=test_pipeline))
