# IDD Lite, 7 classes, as one of several domains: a folder data set, trained on crops of 112×160 and
# tested on whole images at their own 227×320. Its test images have no masks, so `val` is the test
# set too.
import os.path as osp

__height, __width = 227, 320
__crop_size = (112, 160)
__load, __load_masks = [dict(type='LoadImageFromFile')], [dict(type='LoadAnnotations')]
__resize_randomly = [
    dict(type='RandomResize', scale=(__width, __height), ratio_range=(0.5, 2.0), keep_ratio=True)
]
__crop = dict(type='RandomCrop', crop_size=__crop_size)
__flip = [dict(type='RandomFlip', prob=0.5)]
__pack = [dict(type='PackSegInputs')]
__classes = (
    'drivable',
    'non-drivable',
    'living thing',
    'vehicle',
    'roadside object',
    'far object',
    'sky',
)
__set = dict(
    type='FolderDataset',
    data_root='data/idd_lite',
    classes=__classes,
    palette=[
        [128, 64, 128],
        [244, 35, 232],
        [220, 20, 60],
        [0, 0, 142],
        [153, 153, 153],
        [70, 70, 70],
        [70, 130, 180],
    ],
)
__val = dict(
    **__set,
    image_dir='images/val',
    mask_dir='masks/val',
    subset='labeled',
    pipeline=[*__load, *__load_masks, *__pack],
)

split_dir = osp.normpath('{{ fileDirname }}/../splits/idd_lite')
model = dict(
    data_preprocessor=dict(size=__crop_size),
    decode_head=dict(num_classes=len(__classes)),
    auxiliary_head=dict(
        num_classes=len(__classes),
        context_classes=('drivable', 'non-drivable', 'far object', 'sky'),
    ),
)
train = dict(
    type='SemiSegDataset',
    labeled=dict(
        **__set,
        image_dir='images/train',
        mask_dir='masks/train',
        subset='labeled',
        pipeline=[
            *__load,
            *__load_masks,
            *__resize_randomly,
            dict(__crop, cat_max_ratio=0.75),
            *__flip,
            *__pack,
        ],
    ),
    unlabeled=dict(
        **__set,
        image_dir='images/train',
        subset='unlabeled',
        pipeline=[*__load, *__resize_randomly, __crop, *__flip, *__pack],
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
                dict(
                    type='Resize',
                    scale=(int(__width * scale), int(__height * scale)),
                    keep_ratio=False,
                )
                for scale in (0.5, 0.75, 1.0, 1.25, 1.5)
            ],
            [dict(type='RandomFlip', prob=0.0), dict(type='RandomFlip', prob=1.0)],
            __load_masks,
            __pack,
        ],
    ),
]
