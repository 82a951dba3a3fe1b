# CamVid, 11 classes, trained on crops of 360×480 of images scaled by 0.5 to 2, tested on whole
# images at their own 360×480; validated on `val`, tested on `test`.
# A config names its lists of labelled and unlabelled training images, which lie beside this file.
import os.path as osp

data_root = 'data/camvid'
# absolute, so that a config in another project can build on this one
split_dir = osp.normpath('{{ fileDirname }}/../splits/camvid')

crop_size = (360, 480)
random_resize = dict(type='RandomResize', scale=(480, 360), ratio_range=(0.5, 2.0), keep_ratio=True)
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
# images of other sizes are resized to 360×480
resize = dict(type='Resize', scale=(480, 360), keep_ratio=False)
# masks are loaded after the resize: the prediction is compared at the mask's own size
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
                dict(type='Resize', scale=(int(480 * scale), int(360 * scale)), keep_ratio=False)
                for scale in (0.5, 0.75, 1.0, 1.25, 1.5)
            ],
            [dict(type='RandomFlip', prob=0.0), dict(type='RandomFlip', prob=1.0)],
            [dict(type='LoadAnnotations')],
            [dict(type='PackSegInputs')],
        ],
    ),
]

train_dataloader = dict(
    batch_size=10,
    num_workers=4,
    persistent_workers=True,
    sampler=dict(type='PairSampler', shuffle=True),
    dataset=dict(
        type='SemiSegDataset',
        labeled=dict(
            type='CamVidDataset',
            data_root=data_root,
            data_prefix=dict(img_path='images/train', seg_map_path='masks/train'),
            pipeline=train_pipeline,
        ),
        unlabeled=dict(
            type='CamVidDataset',
            data_root=data_root,
            data_prefix=dict(img_path='images/train'),
            pipeline=unlabeled_pipeline,
        ),
    ),
)
val_dataloader = dict(
    batch_size=1,
    num_workers=2,
    persistent_workers=True,
    sampler=dict(type='DefaultSampler', shuffle=False),
    dataset=dict(
        type='CamVidDataset',
        data_root=data_root,
        ann_file='val.txt',
        data_prefix=dict(img_path='images/val', seg_map_path='masks/val'),
        pipeline=test_pipeline,
    ),
)
test_dataloader = dict(
    batch_size=1,
    num_workers=2,
    persistent_workers=True,
    sampler=dict(type='DefaultSampler', shuffle=False),
    dataset=dict(
        type='CamVidDataset',
        data_root=data_root,
        ann_file='test.txt',
        data_prefix=dict(img_path='images/test', seg_map_path='masks/test'),
        pipeline=test_pipeline,
    ),
)

val_evaluator = dict(type='ClassIoUMetric', iou_metrics=['mIoU'])
test_evaluator = val_evaluator
