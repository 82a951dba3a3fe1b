# Synthetic scenes, nothing to download: 48×48, a ground and six kinds of objects. The parts are
# ranges of scene numbers and so have no scene in common.
size = 48
crop_size = (size, size)
n_labeled = 12
n_unlabeled = 600

random_resize = dict(
    type='RandomResize', scale=(size, size), ratio_range=(0.75, 1.5), keep_ratio=True
)
crop = dict(type='RandomCrop', crop_size=(size, size))
flip = dict(type='RandomFlip', prob=0.5)
train_pipeline = [
    dict(type='DrawShapesScene'),
    random_resize,
    # the first of ten draws in which no class fills more than three quarters
    dict(crop, cat_max_ratio=0.75),
    flip,
    dict(type='PackSegInputs'),
]
unlabeled_pipeline = [
    dict(type='DrawShapesScene', with_seg_map=False),
    random_resize,
    crop,
    flip,
    dict(type='PackSegInputs'),
]
test_pipeline = [dict(type='DrawShapesScene'), dict(type='PackSegInputs')]

train_dataloader = dict(
    batch_size=8,
    # every process draws and keeps its own scenes: more processes would draw more, not faster
    num_workers=0,
    sampler=dict(type='PairSampler', shuffle=True),
    dataset=dict(
        type='SemiSegDataset',
        labeled=dict(
            type='ShapesDataset', start=0, count=n_labeled, size=size, pipeline=train_pipeline
        ),
        unlabeled=dict(
            type='ShapesDataset',
            start=1000,
            count=n_unlabeled,
            size=size,
            pipeline=unlabeled_pipeline,
        ),
    ),
)
# the batch, of all processes together, that the learning rate is for
auto_scale_lr = dict(enable=False, base_batch_size=8)
val_dataloader = dict(
    batch_size=20,
    num_workers=0,
    sampler=dict(type='DefaultSampler', shuffle=False),
    dataset=dict(type='ShapesDataset', start=10000, count=100, size=size, pipeline=test_pipeline),
)
test_dataloader = dict(
    batch_size=20,
    num_workers=0,
    sampler=dict(type='DefaultSampler', shuffle=False),
    dataset=dict(type='ShapesDataset', start=20000, count=200, size=size, pipeline=test_pipeline),
)

# several processes gather their results in memory, on CPUs too; mmengine's default 'cpu' writes
# files to a folder that all machines have to see
val_evaluator = dict(type='ClassIoUMetric', iou_metrics=['mIoU'], collect_device='gpu')
test_evaluator = val_evaluator
