# CamVid at a third of its size: for studies of many runs on two CPU cores.
_base_ = './camvid_168x224.py'

resize = dict(type='Resize', scale=(160, 120), keep_ratio=False)
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
                dict(type='Resize', scale=(int(160 * scale), int(120 * scale)), keep_ratio=False)
                for scale in (0.5, 0.75, 1.0, 1.25, 1.5)
            ],
            [dict(type='RandomFlip', prob=0.0), dict(type='RandomFlip', prob=1.0)],
            [dict(type='LoadAnnotations')],
            [dict(type='PackSegInputs')],
        ],
    ),
]

train_dataloader = dict(
    dataset=dict(labeled=dict(pipeline=train_pipeline), unlabeled=dict(pipeline=unlabeled_pipeline))
)
val_dataloader = dict(dataset=dict(pipeline=test_pipeline))
test_dataloader = dict(dataset=dict(pipeline=test_pipeline))
