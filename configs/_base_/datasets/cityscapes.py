# Cityscapes at 512×1024, trained on crops of that size of images scaled by 0.5 to 2, tested on
# whole images. Paths are relative to the project root. A config names its lists
# (`aachen/aachen_000000_000019` a line), which tools/make_splits.py writes to
# data/splits/cityscapes.
cityscapes_root = 'data/cityscapes'
split_dir = 'data/splits/cityscapes'

crop_size = (512, 1024)
random_resize = dict(
    type='RandomResize', scale=(1024, 512), ratio_range=(0.5, 2.0), keep_ratio=True
)
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
resize = dict(type='Resize', scale=(1024, 512), keep_ratio=True)
# masks are loaded after the resize: the prediction is compared at the mask's own 1024×2048 (the
# paper's numbers are at 512×1024)
test_pipeline = [
    dict(type='LoadImageFromFile'),
    resize,
    dict(type='LoadAnnotations'),
    dict(type='PackSegInputs'),
]
tta_pipeline = [
    dict(type='LoadImageFromFile'),
    dict(
        type='TestTimeAug',
        transforms=[
            [
                dict(type='Resize', scale=(int(1024 * scale), int(512 * scale)), keep_ratio=True)
                for scale in (0.5, 0.75, 1.0, 1.25, 1.5)
            ],
            [dict(type='RandomFlip', prob=0.0), dict(type='RandomFlip', prob=1.0)],
            [dict(type='LoadAnnotations')],
            [dict(type='PackSegInputs')],
        ],
    ),
]

train_dataloader = dict(
    batch_size=4,
    num_workers=4,
    persistent_workers=True,
    sampler=dict(type='PairSampler', shuffle=True),
    dataset=dict(
        type='SemiSegDataset',
        labeled=dict(
            type='CityscapesDataset',
            data_prefix=dict(
                img_path=f'{cityscapes_root}/leftImg8bit/train',
                seg_map_path=f'{cityscapes_root}/gtFine/train',
            ),
            pipeline=train_pipeline,
        ),
        unlabeled=dict(
            type='CityscapesDataset',
            data_prefix=dict(img_path=f'{cityscapes_root}/leftImg8bit/train'),
            pipeline=unlabeled_pipeline,
        ),
    ),
)
val_dataloader = dict(
    batch_size=1,
    num_workers=4,
    persistent_workers=True,
    sampler=dict(type='DefaultSampler', shuffle=False),
    dataset=dict(
        type='CityscapesDataset',
        data_prefix=dict(
            img_path=f'{cityscapes_root}/leftImg8bit/val',
            seg_map_path=f'{cityscapes_root}/gtFine/val',
        ),
        pipeline=test_pipeline,
    ),
)
test_dataloader = val_dataloader

val_evaluator = dict(type='ClassIoUMetric', iou_metrics=['mIoU'])
test_evaluator = val_evaluator
