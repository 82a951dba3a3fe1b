# PASCAL VOC 2012 with the SBD masks: the longer side to 400 × (0.5 to 2.0), a 320×320 crop, a flip;
# tested at full size. Paths are relative to the project root. The lists are written by
# tools/make_splits.py; `--from-unimatch` writes those that the field uses, for
#   --cfg-options train_dataloader.dataset.split_dir=data/splits/voc_field
_base_ = './crops.py'
voc_root = 'data/VOCdevkit/VOC2012'
num_images = 10582
context_classes = ('background',)  # what is not an object
image_size, crop_size = (400, 400), (320, 320)

# the paper's crop, whichever class fills it
augmentation = _base_.unlabeled_pipeline[1:]
# `ann_file` is required; the lists of `split_dir` take its place
voc = dict(type='PascalVOCDataset', ann_file='')
images = dict(**voc, data_prefix=dict(img_path=f'{voc_root}/JPEGImages'))
train_dataloader = dict(
    batch_size=10,
    dataset=dict(
        split_dir='data/splits/voc',
        labeled=dict(
            **voc,
            data_prefix=dict(
                img_path=f'{voc_root}/JPEGImages', seg_map_path=f'{voc_root}/SegmentationClassAug'
            ),
            pipeline=[
                dict(type='LoadImageFromFile'),
                dict(type='LoadAnnotations'),
                *augmentation,
            ],
        ),
        unlabeled=images,
    ),
)
val_dataloader = dict(
    dataset=dict(
        type='PascalVOCDataset',
        ann_file=f'{voc_root}/ImageSets/Segmentation/val.txt',
        data_prefix=dict(
            img_path=f'{voc_root}/JPEGImages', seg_map_path=f'{voc_root}/SegmentationClass'
        ),
    )
)
test_dataloader = val_dataloader
