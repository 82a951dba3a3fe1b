# IDD Lite, 7 classes, at about half of its 227×320, as one of several domains: a folder data set.
# Its test images have no masks, so `val` is the test set too.
import os.path as osp

__height, __width = 112, 160
__load, __load_masks = [dict(type='LoadImageFromFile')], [dict(type='LoadAnnotations')]
__resize = [dict(type='Resize', scale=(__width, __height), keep_ratio=False)]
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
    # masks are loaded after the resize: the prediction is compared at the mask's own 227×320
    pipeline=[*__load, *__resize, *__load_masks, *__pack],
)

split_dir = osp.normpath('{{ fileDirname }}/../splits/idd_lite')
model = dict(
    data_preprocessor=dict(size=(__height, __width)),
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
        pipeline=[*__load, *__load_masks, *__resize, *__pack],
    ),
    unlabeled=dict(
        **__set,
        image_dir='images/train',
        subset='unlabeled',
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
