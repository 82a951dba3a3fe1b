# IDD Lite, 7 classes, a folder data set: trained on crops of 112×160 of images scaled by 0.5 to 2,
# tested on whole images at their own 227×320. Its test images have no masks, so `val` is the test
# set too. A config names its lists, which lie beside this file.
import os.path as osp

data_root = 'data/idd_lite'
# absolute, so that a config in another project can build on this one
split_dir = osp.normpath('{{ fileDirname }}/../splits/idd_lite')
classes = (
    'drivable',
    'non-drivable',
    'living thing',
    'vehicle',
    'roadside object',
    'far object',
    'sky',
)
palette = [
    [128, 64, 128],
    [244, 35, 232],
    [220, 20, 60],
    [0, 0, 142],
    [153, 153, 153],
    [70, 70, 70],
    [70, 130, 180],
]

crop_size = (112, 160)
random_resize = dict(type='RandomResize', scale=(320, 227), ratio_range=(0.5, 2.0), keep_ratio=True)
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
                dict(type='Resize', scale=(int(320 * scale), int(227 * scale)), keep_ratio=False)
                for scale in (0.5, 0.75, 1.0, 1.25, 1.5)
            ],
            [dict(type='RandomFlip', prob=0.0), dict(type='RandomFlip', prob=1.0)],
            [dict(type='LoadAnnotations')],
            [dict(type='PackSegInputs')],
        ],
    ),
]

folder = dict(type='FolderDataset', data_root=data_root, classes=classes, palette=palette)
train_dataloader = dict(
    batch_size=8,
    num_workers=2,
    persistent_workers=True,
    sampler=dict(type='PairSampler', shuffle=True),
    dataset=dict(
        type='SemiSegDataset',
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
val_dataloader = dict(
    batch_size=1,
    num_workers=2,
    persistent_workers=True,
    sampler=dict(type='DefaultSampler', shuffle=False),
    dataset=dict(
        **folder,
        image_dir='images/val',
        mask_dir='masks/val',
        subset='labeled',
        pipeline=test_pipeline,
    ),
)
test_dataloader = val_dataloader

val_evaluator = dict(type='ClassIoUMetric', iou_metrics=['mIoU'])
test_evaluator = val_evaluator
