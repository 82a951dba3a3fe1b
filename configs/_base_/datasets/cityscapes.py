# Cityscapes at 512×1024, trained on crops of that size of images scaled by 0.5 to 2, tested on
# whole images. Paths are relative to the project root. The lists (lines such as
# `aachen/aachen_000000_000019`) are written by tools/make_splits.py.
_base_ = './crops.py'
cityscapes_root = 'data/cityscapes'
num_images = 2975
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
image_size, crop_size = (1024, 512), (512, 1024)

# masks are loaded after the resize: the prediction is compared at the mask's own 1024×2048 (the
# paper's numbers are at 512×1024)
test_pipeline = [
    dict(type='LoadImageFromFile'),
    dict(type='Resize', keep_ratio=True),
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
        ),
        unlabeled=dict(
            type='CityscapesDataset',
            data_prefix=dict(img_path=f'{cityscapes_root}/leftImg8bit/train'),
        ),
    ),
)
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
