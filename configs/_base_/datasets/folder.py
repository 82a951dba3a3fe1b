# Your own images: data/mine/images, and masks of some of them in data/mine/masks (one channel of
# class ids, 255 = ignore); images and masks to validate on in data/mine/val. Scaled, cropped and
# flipped like VOC. A config names the classes of each set.
_base_ = './pairs.py'
mine = 'data/mine'
image_size, crop_size = (400, 400), (320, 320)  # width, height; height, width
train_pipeline = [
    dict(type='LoadImageFromFile'),
    dict(type='LoadAnnotations'),
    dict(type='RandomResize', scale=image_size, ratio_range=(0.5, 2.0), keep_ratio=True),
    # the first of ten draws in which no class fills more than three quarters
    dict(type='RandomCrop', crop_size=crop_size, cat_max_ratio=0.75),
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

folder = dict(type='FolderDataset', image_dir=f'{mine}/images', mask_dir=f'{mine}/masks')
train_dataloader = dict(
    batch_size=10,
    dataset=dict(
        labeled=dict(**folder, subset='labeled', pipeline=train_pipeline),
        unlabeled=dict(**folder, subset='unlabeled', pipeline=unlabeled_pipeline),
    ),
)
# the batch, of all processes together, that the learning rate is for
auto_scale_lr = dict(enable=False, base_batch_size=10)
val_dataloader = dict(
    dataset=dict(
        type='FolderDataset',
        image_dir=f'{mine}/val/images',
        mask_dir=f'{mine}/val/masks',
        subset='labeled',
        pipeline=_base_.test_pipeline,
    )
)
test_dataloader = val_dataloader
