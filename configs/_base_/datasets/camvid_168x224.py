# CamVid at about half its size, trained on crops of 168×224 of images scaled by 0.5 to 2; four
# labelled and four unlabelled images a step: for two CPU cores.
_base_ = './camvid.py'

crop_size = (168, 224)
random_resize = dict(type='RandomResize', scale=(224, 168), ratio_range=(0.5, 2.0), keep_ratio=True)
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
resize = dict(type='Resize', scale=(224, 168), keep_ratio=False)
# masks are loaded after the resize: the prediction is compared at the mask's own 360×480
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
                dict(type='Resize', scale=(int(224 * scale), int(168 * scale)), keep_ratio=False)
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
    num_workers=2,
    dataset=dict(
        labeled=dict(pipeline=train_pipeline), unlabeled=dict(pipeline=unlabeled_pipeline)
    ),
)
val_dataloader = dict(dataset=dict(pipeline=test_pipeline))
test_dataloader = dict(dataset=dict(pipeline=test_pipeline))
