# Your own images: data/mine/images, and masks of some of them in data/mine/masks (one channel of
# class ids, 255 = ignore); images and masks to validate on in data/mine/val. Scaled, cropped and
# flipped as VOC is. A config names the `classes` at its top level.
mine = 'data/mine'
crop_size = (320, 320)

random_resize = dict(type='RandomResize', scale=(400, 400), ratio_range=(0.5, 2.0), keep_ratio=True)
crop = dict(type='RandomCrop', crop_size=crop_size)
flip = dict(type='RandomFlip', prob=0.5)
train_pipeline = [
    dict(type='LoadImageFromFile'),
    dict(type='LoadAnnotations'),
    random_resize,
    # of ten draws the first in which no class fills more than three quarters
    dict(crop, cat_max_ratio=0.75),
    flip,
    dict(type='PackSegInputs'),
]
unlabeled_pipeline = [
    dict(type='LoadImageFromFile'),
    random_resize,
    crop,
    flip,
    dict(type='PackSegInputs'),
]
test_pipeline = [
    dict(type='LoadImageFromFile'),
    dict(type='LoadAnnotations'),
    dict(type='PackSegInputs'),
]
tta_pipeline = [
    dict(type='LoadImageFromFile'),
    dict(
        type='TestTimeAug',
        transforms=[
            [
                dict(type='Resize', scale_factor=scale, keep_ratio=True)
                for scale in (0.5, 0.75, 1.0, 1.25, 1.5)
            ],
            [dict(type='RandomFlip', prob=0.0), dict(type='RandomFlip', prob=1.0)],
            [dict(type='LoadAnnotations')],
            [dict(type='PackSegInputs')],
        ],
    ),
]

folder = dict(type='FolderDataset', image_dir=f'{mine}/images', mask_dir=f'{mine}/masks')
train_dataloader = dict(
    batch_size=10,
    num_workers=4,
    persistent_workers=True,
    sampler=dict(type='PairSampler', shuffle=True),
    dataset=dict(
        type='SemiSegDataset',
        labeled=dict(**folder, subset='labeled', pipeline=train_pipeline),
        unlabeled=dict(**folder, subset='unlabeled', pipeline=unlabeled_pipeline),
    ),
)
val_dataloader = dict(
    batch_size=1,
    num_workers=4,
    persistent_workers=True,
    sampler=dict(type='DefaultSampler', shuffle=False),
    dataset=dict(
        type='FolderDataset',
        image_dir=f'{mine}/val/images',
        mask_dir=f'{mine}/val/masks',
        subset='labeled',
        pipeline=test_pipeline,
    ),
)
test_dataloader = val_dataloader

val_evaluator = dict(type='ClassIoUMetric', iou_metrics=['mIoU'])
test_evaluator = val_evaluator
