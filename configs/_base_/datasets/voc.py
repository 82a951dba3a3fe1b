# PASCAL VOC 2012 with the SBD masks: the longer side to 400 × (0.5 to 2.0), a 320×320 crop, a flip;
# tested at full size. Paths are relative to the project root. A config names its lists, which
# tools/make_splits.py writes to data/splits/voc.
voc_root = 'data/VOCdevkit/VOC2012'
split_dir = 'data/splits/voc'
crop_size = (320, 320)

augmentation = [
    dict(type='RandomResize', scale=(400, 400), ratio_range=(0.5, 2.0), keep_ratio=True),
    dict(type='RandomCrop', crop_size=crop_size),
    dict(type='RandomFlip', prob=0.5),
    dict(type='PackSegInputs'),
]
train_pipeline = [dict(type='LoadImageFromFile'), dict(type='LoadAnnotations'), *augmentation]
unlabeled_pipeline = [dict(type='LoadImageFromFile'), *augmentation]
test_pipeline = [
    dict(type='LoadImageFromFile'),
    dict(type='LoadAnnotations'),
    dict(type='PackSegInputs'),
]
tta_pipeline = [
    dict(type='LoadImageFromFile'),
    dict(
        type='TestTimeAug',
        transforms=[
            [
                dict(type='Resize', scale_factor=scale, keep_ratio=True)
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
            type='PascalVOCDataset',
            data_prefix=dict(
                img_path=f'{voc_root}/JPEGImages', seg_map_path=f'{voc_root}/SegmentationClassAug'
            ),
            pipeline=train_pipeline,
        ),
        unlabeled=dict(
            type='PascalVOCDataset',
            data_prefix=dict(img_path=f'{voc_root}/JPEGImages'),
            pipeline=unlabeled_pipeline,
        ),
    ),
)
val_dataloader = dict(
    batch_size=1,
    num_workers=4,
    persistent_workers=True,
    sampler=dict(type='DefaultSampler', shuffle=False),
    dataset=dict(
        type='PascalVOCDataset',
        ann_file=f'{voc_root}/ImageSets/Segmentation/val.txt',
        data_prefix=dict(
            img_path=f'{voc_root}/JPEGImages', seg_map_path=f'{voc_root}/SegmentationClass'
        ),
        pipeline=test_pipeline,
    ),
)
test_dataloader = val_dataloader

val_evaluator = dict(type='ClassIoUMetric', iou_metrics=['mIoU'])
test_evaluator = val_evaluator
