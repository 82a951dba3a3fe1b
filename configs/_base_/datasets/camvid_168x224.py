# CamVid at about half its size, four labelled and four unlabelled images a step: for two CPU cores.
_base_ = './camvid.py'

resize = dict(type='Resize', scale=(224, 168), keep_ratio=False)
train_pipeline = [
    dict(type='LoadImageFromFile'),
    dict(type='LoadAnnotations'),
    resize,
    dict(type='PackSegInputs'),
]
unlabeled_pipeline = [dict(type='LoadImageFromFile'), resize, dict(type='PackSegInputs')]
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
