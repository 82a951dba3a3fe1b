# PASCAL VOC 2012, with SBD's images unlabelled: the longer side to 400 × (0.5 to 2.0), a 320×320
# crop, a flip; tested at full size. Paths are relative to the project root. The lists are written
# by mmseg-cct make-splits; `--from-unimatch` writes those that the field uses, to
# the same folder
_base_ = './pairs.py'
voc_root = 'data/VOCdevkit/VOC2012'
context_classes = ('background',)  # what is not an object
image_size, crop_size = (400, 400), (320, 320)  # width, height; height, width

# the paper's crop, whichever class fills it
train_pipeline = [
    dict(type='LoadImageFromFile'),
    dict(type='LoadAnnotations'),
    dict(type='RandomResize', scale=image_size, ratio_range=(0.5, 2.0), keep_ratio=True),
    dict(type='RandomCrop', crop_size=crop_size),
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
# `ann_file` is required; the lists of `split_dir` take its place
voc = dict(type='PascalVOCDataset', ann_file='')
train_dataloader = dict(
    batch_size=10,
    dataset=dict(
        split_dir='data/splits/voc',
        labeled=dict(
            **voc,
            data_prefix=dict(
                img_path=f'{voc_root}/JPEGImages', seg_map_path=f'{voc_root}/SegmentationClass'
            ),
            pipeline=train_pipeline,
        ),
        unlabeled=dict(
            **voc,
            data_prefix=dict(img_path=f'{voc_root}/JPEGImages'),
            pipeline=unlabeled_pipeline,
        ),
    ),
)
# the batch, of all processes together, that the learning rate is for
auto_scale_lr = dict(enable=False, base_batch_size=10)
val_dataloader = dict(
    dataset=dict(
        type='PascalVOCDataset',
        ann_file=f'{voc_root}/ImageSets/Segmentation/val.txt',
        data_prefix=dict(
            img_path=f'{voc_root}/JPEGImages', seg_map_path=f'{voc_root}/SegmentationClass'
        ),
        pipeline=_base_.test_pipeline,
    )
)
test_dataloader = val_dataloader
