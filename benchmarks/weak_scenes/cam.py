# The classifier of the weakly supervised study on drawn scenes, with the demo's backbone.
_base_ = '../../configs/_base_/classifier.py'

root = 'work_dirs/scenes'
classes = ('background', 'disc', 'box', 'triangle', 'star', 'cross', 'ring')
model = dict(
    backbone=dict(
        type='mmseg.ResNetV1c',
        depth=18,
        stem_channels=16,
        base_channels=16,
        num_stages=2,
        strides=(1, 1),
        dilations=(1, 1),
        out_indices=(1,),
        norm_cfg=dict(type='BN', requires_grad=True),
    ),
    head=dict(in_channels=32, num_classes=6),
)
load, pack = dict(type='LoadImageFromFile'), dict(type='PackInputs')
train_dataloader = dict(
    batch_size=32,
    num_workers=0,
    sampler=dict(type='InfiniteSampler', shuffle=True),
    dataset=dict(
        type='MultiLabelDataset',
        ann_file=f'{root}/train.json',
        data_prefix=f'{root}/images/train',
        pipeline=[load, dict(type='RandomFlip', prob=0.5), pack],
    ),
)
val_dataloader, test_dataloader = (
    dict(
        batch_size=50,
        num_workers=0,
        sampler=dict(type='DefaultSampler', shuffle=False),
        dataset=dict(
            type='MultiLabelDataset',
            ann_file=f'{root}/{part}.json',
            data_prefix=f'{root}/images/{part}',
            pipeline=[load, pack],
        ),
    )
    for part in ('val', 'test')
)
max_iters = 500
optim_wrapper = dict(_delete_=True, optimizer=dict(type='AdamW', lr=5e-3, weight_decay=1e-4))
train_cfg = dict(max_iters=max_iters, val_interval=250)
param_scheduler = dict(end=max_iters)
default_hooks = dict(checkpoint=dict(interval=250))
pseudo_labels = dict(
    images=dict(
        type='MultiLabelDataset',
        ann_file=f'{root}/12_unlabeled.json',
        data_prefix=f'{root}/images/train',
    ),
    segmentation=dict(
        type='FolderDataset',
        data_root=root,
        image_dir='images/train',
        mask_dir='masks/train',
        classes=classes,
        subset='labeled',
        ann_file=f'{root}/12_unlabeled.txt',
    ),
    background='background',
    input_size=None,
    scales=(1.0, 1.5, 2.0),
)
