# CamVid at about half its size, trained on crops of 168×224 of images scaled by 0.5 to 2; four
# labelled and four unlabelled images per step: for two CPU cores.
_base_ = './camvid.py'
image_size, crop_size = (224, 168), (168, 224)
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
train_dataloader = dict(batch_size=4, num_workers=2)
