# The setting of the paper's ablation on VOC: the longer side to 300 × (0.5 to 2.0), a 240×240 crop.
_base_ = './cct_r50_voc_500.py'

crop_size = (240, 240)
augmentation = [
    dict(type='RandomResize', scale=(300, 300), ratio_range=(0.5, 2.0), keep_ratio=True),
    dict(type='RandomCrop', crop_size=crop_size),
    dict(type='RandomFlip', prob=0.5),
    dict(type='PackSegInputs'),
]
model = dict(data_preprocessor=dict(size=crop_size))
train_dataloader = dict(
    dataset=dict(
        labeled=dict(
            pipeline=[dict(type='LoadImageFromFile'), dict(type='LoadAnnotations'), *augmentation]
        ),
        unlabeled=dict(pipeline=[dict(type='LoadImageFromFile'), *augmentation]),
    )
)
