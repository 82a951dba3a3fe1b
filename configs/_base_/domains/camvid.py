# CamVid as one of several domains, at its own 360×480 without augmentation. Its lists
# are in `_base_/splits`. Names that begin with `__` stay in this file.

__height, __width = 360, 480
__load, __load_masks = [dict(type='LoadImageFromFile')], [dict(type='LoadAnnotations')]
__resize = [dict(type='Resize', scale=(__width, __height), keep_ratio=False)]
__pack = [dict(type='PackSegInputs')]
# masks are loaded after the resize: the prediction is compared at the mask's own size
__test_pipeline = [*__load, *__resize, *__load_masks, *__pack]
__context = ('Sky', 'Building', 'Road', 'Pavement', 'Tree', 'Fence')
__set = dict(type='CamVidDataset', data_root='data/camvid')

model = dict(
    data_preprocessor=dict(size=(__height, __width)),
    decode_head=dict(num_classes=11),
    auxiliary_head=dict(num_classes=11, context_classes=__context),
)
train = dict(
    type='SemiSegDataset',
    # absolute, so that a config in another project can build on this one
    split_dir=__import__('os').path.normpath('{{ fileDirname }}/../splits/camvid'),
    labeled=dict(
        **__set,
        data_prefix=dict(img_path='images/train', seg_map_path='masks/train'),
        pipeline=[*__load, *__load_masks, *__resize, *__pack],
    ),
    unlabeled=dict(
        **__set, data_prefix=dict(img_path='images/train'), pipeline=[*__load, *__resize, *__pack]
    ),
)
val = dict(
    **__set,
    ann_file='val.txt',
    data_prefix=dict(img_path='images/val', seg_map_path='masks/val'),
    pipeline=__test_pipeline,
)
test = dict(
    **__set,
    ann_file='test.txt',
    data_prefix=dict(img_path='images/test', seg_map_path='masks/test'),
    pipeline=__test_pipeline,
)
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
