# CamVid, 11 classes, trained on crops of 360×480 of images scaled by 0.5 to 2, tested on whole
# images at their own 360×480; validated on `val`, tested on `test`. Its lists of labelled and
# unlabelled training images are in `_base_/splits`.

_base_ = './pairs.py'
data_root = 'data/camvid'
context_classes = ('Sky', 'Building', 'Road', 'Pavement', 'Tree', 'Fence')  # what is not an object
image_size, crop_size = (480, 360), (360, 480)  # width, height; height, width

train_pipeline = [
    dict(type='LoadImageFromFile'),
    dict(type='LoadAnnotations'),
    dict(type='RandomResize', scale=image_size, ratio_range=(0.5, 2.0), keep_ratio=True),
    # the first of ten draws in which no class fills more than three quarters
    dict(type='RandomCrop', crop_size=crop_size, cat_max_ratio=0.75),
    dict(type='RandomFlip', prob=0.5),
    dict(type='PackSegInputs'),
]
unlabeled_pipeline = [
    dict(type='LoadImageFromFile'),
    dict(type='RandomResize', scale=image_size, ratio_range=(0.5, 2.0), keep_ratio=True),
    dict(type='RandomCrop', crop_size=crop_size),
    dict(type='RandomFlip', prob=0.5),
    dict(type='PackSegInputs'),
]
test_pipeline = [
    dict(type='LoadImageFromFile'),
    dict(type='Resize', scale=image_size, keep_ratio=False),  # for images of another size
    dict(type='LoadAnnotations'),  # after the resize: compared at the mask's own size
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

camvid = dict(type='CamVidDataset', data_root=data_root)
train_dataloader = dict(
    batch_size=10,
    dataset=dict(
        # absolute, so that a config in another project can build on this one
        split_dir=__import__('os').path.normpath('{{ fileDirname }}/../splits/camvid'),
        labeled=dict(
            **camvid,
            data_prefix=dict(img_path='images/train', seg_map_path='masks/train'),
            pipeline=train_pipeline,
        ),
        unlabeled=dict(
            **camvid, data_prefix=dict(img_path='images/train'), pipeline=unlabeled_pipeline
        ),
    ),
)
# the batch, of all processes together, that the learning rate is for
auto_scale_lr = dict(enable=False, base_batch_size=10)
val_dataloader = dict(
    num_workers=2,
    dataset=dict(
        **camvid,
        ann_file='val.txt',
        data_prefix=dict(img_path='images/val', seg_map_path='masks/val'),
        pipeline=test_pipeline,
    ),
)
test_dataloader = dict(
    num_workers=2,
    dataset=dict(
        **camvid,
        ann_file='test.txt',
        data_prefix=dict(img_path='images/test', seg_map_path='masks/test'),
        pipeline=test_pipeline,
    ),
)
