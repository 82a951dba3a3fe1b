# Like folder.py, with whole images resized to `image_size`.
_base_ = './folder.py'
test_pipeline = [
    dict(type='LoadImageFromFile'),
    dict(type='Resize', keep_ratio=True),
    dict(type='LoadAnnotations'),  # after the resize: compared at the mask's own size
    dict(type='PackSegInputs'),
]
val_dataloader = dict(dataset=dict(pipeline=test_pipeline))
test_dataloader = val_dataloader
