# CamVid at half its size, for many runs on a CPU: trained on crops of 120×160 of images scaled by
# 0.7 to 2, tested on whole images. Eight labelled and eight unlabelled images per step.
_base_ = './camvid.py'
image_size, crop_size = (240, 180), (120, 160)
random_resize = dict(type='RandomResize', ratio_range=(0.7, 2.0), keep_ratio=True)
load, load_masks, _, *rest = _base_.train_pipeline
train_pipeline = [load, load_masks, random_resize, *rest]
load, _, *rest = _base_.unlabeled_pipeline
unlabeled_pipeline = [load, random_resize, *rest]
tta_pipeline = [
    dict(type='LoadImageFromFile'),
    dict(
        type='TestTimeAug',
        transforms=[
            [
                dict(type='Resize', scale=(int(240 * scale), int(180 * scale)), keep_ratio=False)
                for scale in (0.5, 0.75, 1.0, 1.25, 1.5)
            ],
            [dict(type='RandomFlip', prob=0.0), dict(type='RandomFlip', prob=1.0)],
            [dict(type='LoadAnnotations')],
            [dict(type='PackSegInputs')],
        ],
    ),
]
train_dataloader = dict(
    batch_size=8,
    num_workers=2,
    dataset=dict(
        labeled=dict(pipeline=train_pipeline), unlabeled=dict(pipeline=unlabeled_pipeline)
    ),
)
