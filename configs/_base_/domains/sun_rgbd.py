# SUN RGB-D, 13 classes, at 480×640 without augmentation, as one of several domains. The masks are
# from mmseg-cct convert-sun-rgbd, the lists from mmseg-cct make-splits, in `split_dir`. The paper
# evaluates on the 5050 test images, at the training size.
__height, __width = 480, 640
__load = [dict(type='LoadImageFromFile')]
__load_masks = [dict(type='LoadAnnotations')]
__score = [dict(type='ScoreAtSize', size=(__height, __width))]
# cameras differ in resolution
__resize = [dict(type='Resize', scale=(__width, __height), keep_ratio=False)]
__pack = [dict(type='PackSegInputs')]
__set = dict(type='SUNRGBDDataset', data_root='data/sun_rgbd')
__test = dict(
    **__set,
    data_prefix=dict(img_path='images/test', seg_map_path='masks/test'),
    pipeline=[*__load, *__resize, *__load_masks, *__score, *__pack],
)

model = dict(
    data_preprocessor=dict(size=(__height, __width)),
    decode_head=dict(num_classes=13),
    auxiliary_head=dict(num_classes=13, context_classes=('Ceiling', 'Floor', 'Wall', 'Window')),
)
train = dict(
    type='SemiSegDataset',
    split_dir='data/splits/sun_rgbd',
    labeled=dict(
        **__set,
        data_prefix=dict(img_path='images/train', seg_map_path='masks/train'),
        pipeline=[*__load, *__load_masks, *__resize, *__pack],
    ),
    unlabeled=dict(
        **__set, data_prefix=dict(img_path='images/train'), pipeline=[*__load, *__resize, *__pack]
    ),
)
val = __test
test = __test
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
            __score,
            __pack,
        ],
    ),
]
