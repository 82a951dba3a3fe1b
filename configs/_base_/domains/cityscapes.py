# Cityscapes at 512×1024 without augmentation, as one of several domains. A config names its lists
# (lines such as `aachen/aachen_000000_000019`), which mmseg-cct make-splits writes to `split_dir`.
__height, __width = 512, 1024
__root = 'data/cityscapes'
__load, __load_masks = [dict(type='LoadImageFromFile')], [dict(type='LoadAnnotations')]
__resize = [dict(type='Resize', scale=(__width, __height), keep_ratio=True)]
__pack = [dict(type='PackSegInputs')]
__val = dict(
    type='CityscapesDataset',
    data_prefix=dict(img_path=f'{__root}/leftImg8bit/val', seg_map_path=f'{__root}/gtFine/val'),
    # masks are loaded after the resize: the prediction is compared at the mask's own 1024×2048 (the
    # paper's numbers are at 512×1024)
    pipeline=[*__load, *__resize, *__load_masks, *__pack],
)

model = dict(
    data_preprocessor=dict(size=(__height, __width)),
    decode_head=dict(num_classes=19),
    auxiliary_head=dict(
        num_classes=19,
        context_classes=(
            'road',
            'sidewalk',
            'building',
            'wall',
            'fence',
            'vegetation',
            'terrain',
            'sky',
        ),
    ),
)
train = dict(
    type='SemiSegDataset',
    split_dir='data/splits/cityscapes',
    labeled=dict(
        type='CityscapesDataset',
        data_prefix=dict(
            img_path=f'{__root}/leftImg8bit/train', seg_map_path=f'{__root}/gtFine/train'
        ),
        pipeline=[*__load, *__load_masks, *__resize, *__pack],
    ),
    unlabeled=dict(
        type='CityscapesDataset',
        data_prefix=dict(img_path=f'{__root}/leftImg8bit/train'),
        pipeline=[*__load, *__resize, *__pack],
    ),
)
val = __val
test = __val
tta_pipeline = [
    *__load,
    dict(
        type='TestTimeAug',
        transforms=[
            [
                dict(__resize[0], scale=(int(__width * scale), int(__height * scale)))
                for scale in (0.5, 0.75, 1.0, 1.25, 1.5)
            ],
            [dict(type='RandomFlip', prob=0.0), dict(type='RandomFlip', prob=1.0)],
            __load_masks,
            __pack,
        ],
    ),
]
