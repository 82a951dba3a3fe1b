# CamVid at a third of its size: for two CPU cores.
_base_ = './camvid.py'

__height, __width = 120, 160
__load, __load_masks = [dict(type='LoadImageFromFile')], [dict(type='LoadAnnotations')]
__resize = [dict(type='Resize', scale=(__width, __height), keep_ratio=False)]
__pack = [dict(type='PackSegInputs')]
# masks are loaded after the resize: the prediction is compared at the mask's own 360×480
__test_pipeline = [*__load, *__resize, *__load_masks, *__pack]

model = dict(data_preprocessor=dict(size=(__height, __width)))
train = dict(
    labeled=dict(pipeline=[*__load, *__load_masks, *__resize, *__pack]),
    unlabeled=dict(pipeline=[*__load, *__resize, *__pack]),
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
