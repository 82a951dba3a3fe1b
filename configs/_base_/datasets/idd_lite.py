# IDD Lite, 7 classes, a folder data set: trained on crops of 112×160 of images scaled by 0.5 to 2,
# tested on whole images at their own 227×320. Its test images have no masks, so `val` is also
# the test set. The lists are in `_base_/splits`.

_base_ = './pairs.py'
classes = (
    'drivable',
    'non-drivable',
    'living thing',
    'vehicle',
    'roadside object',
    'far object',
    'sky',
)
context_classes = ('drivable', 'non-drivable', 'far object', 'sky')  # what is not an object
palette = [
    [128, 64, 128],
    [244, 35, 232],
    [220, 20, 60],
    [0, 0, 142],
    [153, 153, 153],
    [70, 70, 70],
    [70, 130, 180],
]
image_size, crop_size = (320, 227), (112, 160)  # width, height; height, width
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
tta_pipeline = [
    dict(type='LoadImageFromFile'),
    dict(
        type='TestTimeAug',
        transforms=[
            [
                dict(type='Resize', scale=(int(320 * scale), int(227 * scale)), keep_ratio=False)
                for scale in (0.5, 0.75, 1.0, 1.25, 1.5)
            ],
            [dict(type='RandomFlip', prob=0.0), dict(type='RandomFlip', prob=1.0)],
            [dict(type='LoadAnnotations')],
            [dict(type='PackSegInputs')],
        ],
    ),
]

folder = dict(type='FolderDataset', data_root='data/idd_lite', classes=classes, palette=palette)
train_dataloader = dict(
    batch_size=8,
    num_workers=2,
    dataset=dict(
        # absolute, so that a config in another project can build on this one
        split_dir=__import__('os').path.normpath('{{ fileDirname }}/../splits/idd_lite'),
        labeled=dict(
            **folder,
            image_dir='images/train',
            mask_dir='masks/train',
            subset='labeled',
            pipeline=train_pipeline,
        ),
        unlabeled=dict(
            **folder, image_dir='images/train', subset='unlabeled', pipeline=unlabeled_pipeline
        ),
    ),
)
# the batch, of all processes together, that the learning rate is for
auto_scale_lr = dict(enable=False, base_batch_size=8)
val_dataloader = dict(
    num_workers=2,
    dataset=dict(
        **folder,
        image_dir='images/val',
        mask_dir='masks/val',
        subset='labeled',
        pipeline=_base_.test_pipeline,
    ),
)
test_dataloader = val_dataloader
