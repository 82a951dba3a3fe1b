# The classifier for CamVid, for two CPU cores. Its labels, work_dirs/weak_labels/{train,val,test,
# 50_unlabeled}.json, are written by the commands in docs/weak_labels.md, "CamVid with 50 masks,
# image-level labels".
_base_ = '../_base_/classifier.py'

classes = (
    'Sky',
    'Building',
    'Pole',
    'Road',
    'Pavement',
    'Tree',
    'SignSymbol',
    'Fence',
    'Car',
    'Pedestrian',
    'Bicyclist',
)
model = dict(
    backbone=dict(
        type='mmseg.MobileNetV2',
        widen_factor=1.0,
        # output stride 16; (1, 2, 2, 2, 1, 2, 1) and no dilation make 32
        strides=(1, 2, 2, 2, 1, 1, 1),
        dilations=(1, 1, 1, 1, 1, 2, 2),
        out_indices=(4, 6),
        norm_cfg=dict(type='BN', requires_grad=True),
        init_cfg=dict(type='Pretrained', checkpoint='mmcls://mobilenet_v2'),
    ),
    head=dict(in_channels=320, num_classes=len(classes)),
)

image_size = (224, 168)  # width, height
train_pipeline = [
    dict(type='LoadImageFromFile'),
    dict(type='Resize', scale=image_size),
    dict(type='RandomFlip', prob=0.5),
    dict(type='ColorJitter', brightness=0.3, contrast=0.3, saturation=0.3),
    dict(type='PackInputs'),
]
test_pipeline = [
    dict(type='LoadImageFromFile'),
    dict(type='Resize', scale=image_size),
    dict(type='PackInputs'),
]
train_dataloader = dict(
    batch_size=16,
    num_workers=2,
    persistent_workers=True,
    sampler=dict(type='InfiniteSampler', shuffle=True),
    dataset=dict(
        type='MultiLabelDataset',
        ann_file='work_dirs/weak_labels/train.json',
        data_prefix='data/camvid/images/train',
        pipeline=train_pipeline,
    ),
)
val_dataloader = dict(
    batch_size=16,
    num_workers=2,
    sampler=dict(type='DefaultSampler', shuffle=False),
    dataset=dict(
        type='MultiLabelDataset',
        ann_file='work_dirs/weak_labels/val.json',
        data_prefix='data/camvid/images/val',
        pipeline=test_pipeline,
    ),
)
test_dataloader = dict(
    batch_size=16,
    num_workers=2,
    sampler=dict(type='DefaultSampler', shuffle=False),
    dataset=dict(
        type='MultiLabelDataset',
        ann_file='work_dirs/weak_labels/test.json',
        data_prefix='data/camvid/images/test',
        pipeline=test_pipeline,
    ),
)

train_cfg = dict(max_iters=150, val_interval=150)
param_scheduler = dict(end=150)
default_hooks = dict(checkpoint=dict(interval=150))

pseudo_labels = dict(
    # the images to label, and the classes in each
    images=dict(
        type='MultiLabelDataset',
        ann_file='work_dirs/weak_labels/50_unlabeled.json',
        data_prefix='data/camvid/images/train',
    ),
    # names and colours of the label ids; its masks are read only for the report
    segmentation=dict(
        type='CamVidDataset',
        data_root='data/camvid',
        data_prefix=dict(img_path='images/train', seg_map_path='masks/train'),
    ),
    background=None,  # CamVid has no such class: low scores are ignored
    input_size=image_size,
    scales=(0.5, 1.0, 1.5, 2.0),
    # the paper's; these and the CRF's below are the defaults
    thresholds=dict(background=0.05, foreground=0.30),
    crf=dict(
        gaussian_sxy=3,
        gaussian_compat=3,
        bilateral_sxy=50,
        bilateral_srgb=5,
        bilateral_compat=10,
        iterations=10,
        gt_prob=0.7,
    ),
)
