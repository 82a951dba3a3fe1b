# Cityscapes at 512×1024, trained on crops of that size of images scaled by 0.5 to 2, tested on
# whole images. Paths are relative to the project root. The lists (lines such as
# `aachen/aachen_000000_000019`) are written by mmseg-cct make-splits.
_base_ = './pairs.py'
cityscapes_root = 'data/cityscapes'
# what is not an object
context_classes = (
    'road',
    'sidewalk',
    'building',
    'wall',
    'fence',
    'vegetation',
    'terrain',
    'sky',
)
image_size, crop_size = (1024, 512), (512, 1024)  # width, height; height, width

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
# masks are loaded after the resize: the prediction is compared at the mask's own 1024×2048 (the
# paper's numbers are at 512×1024)
test_pipeline = [
    dict(type='LoadImageFromFile'),
    dict(type='Resize', scale=image_size, keep_ratio=True),
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
    dataset=dict(
        split_dir='data/splits/cityscapes',
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
# the batch, of all processes together, that the learning rate is for
auto_scale_lr = dict(enable=False, base_batch_size=4)
val_dataloader = dict(
    dataset=dict(
        type='CityscapesDataset',
        data_prefix=dict(
            img_path=f'{cityscapes_root}/leftImg8bit/val',
            seg_map_path=f'{cityscapes_root}/gtFine/val',
        ),
        pipeline=test_pipeline,
    )
)
test_dataloader = val_dataloader
