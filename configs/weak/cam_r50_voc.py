# The classifier for PASCAL VOC 2012: image-level labels from its XML files, for the 1464 images
# with masks and the 9118 without. The lists are those of mmseg-cct make-splits. Paths are relative
# to the project root.

_base_ = '../_base_/classifier.py'

voc_root = 'data/VOCdevkit/VOC2012'
# absolute, because mmpretrain joins a list's path to the data root
split_dir = __import__('os').path.abspath('data/splits/voc')

model = dict(
    backbone=dict(
        type='mmseg.ResNetV1c',
        depth=50,
        num_stages=4,
        out_indices=(3,),
        # output stride 16; (1, 2, 2, 2) and no dilation make 32
        strides=(1, 2, 2, 1),
        dilations=(1, 1, 1, 2),
        contract_dilation=True,
        style='pytorch',
        norm_cfg=dict(type='BN', requires_grad=True),
        norm_eval=False,
        init_cfg=dict(type='Pretrained', checkpoint='open-mmlab://resnet50_v1c'),
    ),
    head=dict(in_channels=2048, num_classes=20),
)

train_pipeline = [
    dict(type='LoadImageFromFile'),
    dict(type='RandomResize', scale=(400, 400), ratio_range=(0.8, 1.6), keep_ratio=True),
    dict(type='RandomCrop', crop_size=320, pad_if_needed=True),
    dict(type='RandomFlip', prob=0.5),
    dict(type='PackInputs'),
]
test_pipeline = [
    dict(type='LoadImageFromFile'),
    dict(type='Resize', scale=(400, 400), keep_ratio=True),
    dict(type='PackInputs'),
]
voc = dict(
    type='VOC',
    data_root=voc_root,
    split='',
    data_prefix=dict(img_path='JPEGImages', ann_path='Annotations'),
)
train_dataloader = dict(
    batch_size=16,
    num_workers=4,
    persistent_workers=True,
    sampler=dict(type='InfiniteSampler', shuffle=True),
    dataset=dict(
        type='ConcatDataset',
        datasets=[
            dict(**voc, image_set_path=f'{split_dir}/{name}.txt', pipeline=train_pipeline)
            for name in ('1464_labeled', '1464_unlabeled')
        ],
    ),
)
# one image a batch: they differ in size
val_dataloader = dict(
    batch_size=1,
    num_workers=4,
    sampler=dict(type='DefaultSampler', shuffle=False),
    dataset=dict(**voc, image_set_path='ImageSets/Segmentation/val.txt', pipeline=test_pipeline),
)
test_dataloader = val_dataloader

epoch = 10582 // 16
train_cfg = dict(max_iters=10 * epoch, val_interval=2 * epoch)
param_scheduler = dict(end=10 * epoch)
default_hooks = dict(checkpoint=dict(interval=2 * epoch))

pseudo_labels = dict(
    # the images to label, and the classes in each
    images=dict(**voc, image_set_path=f'{split_dir}/1464_unlabeled.txt'),
    # names and colours of the label ids; its masks, if any, are read for the report
    segmentation=dict(
        type='PascalVOCDataset',
        ann_file=f'{split_dir}/1464_unlabeled.txt',
        data_prefix=dict(
            img_path=f'{voc_root}/JPEGImages', seg_map_path=f'{voc_root}/SegmentationClassAug'
        ),
    ),
    background='background',
    input_size=None,  # each image's own
    scales=(0.5, 1.0, 1.5, 2.0),
)
