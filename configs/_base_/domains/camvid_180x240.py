# CamVid at half its size, trained on crops of 120×160: for a CPU.
_base_ = './camvid.py'

__height, __width = 180, 240
__crop_size = (120, 160)
__load, __load_masks = [dict(type='LoadImageFromFile')], [dict(type='LoadAnnotations')]
__resize_randomly = [
    dict(type='RandomResize', scale=(__width, __height), ratio_range=(0.7, 2.0), keep_ratio=True)
]
__crop = dict(type='RandomCrop', crop_size=__crop_size)
__flip = [dict(type='RandomFlip', prob=0.5)]
__resize = [dict(type='Resize', scale=(__width, __height), keep_ratio=False)]
__pack = [dict(type='PackSegInputs')]
# masks are loaded after the resize: the prediction is compared at the mask's own 360×480
__test_pipeline = [*__load, *__resize, *__load_masks, *__pack]

model = dict(data_preprocessor=dict(size=__crop_size))
train = dict(
    labeled=dict(
        pipeline=[
            *__load,
            *__load_masks,
            *__resize_randomly,
            dict(__crop, cat_max_ratio=0.75),
            *__flip,
            *__pack,
        ]
    ),
    unlabeled=dict(pipeline=[*__load, *__resize_randomly, __crop, *__flip, *__pack]),
)
val = dict(pipeline=__test_pipeline)
test = dict(pipeline=__test_pipeline)
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
