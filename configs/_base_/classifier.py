# The multi-label classifier whose class activation maps become pseudo labels: mmpretrain's own
# parts around the segmentor's backbone, so that CCT can start from its weights. A config adds the
# backbone, the number of classes, the data and the length of the training.
default_scope = 'mmpretrain'
custom_imports = dict(imports=['mmseg_cct.plugin'], allow_failed_imports=False)

model = dict(
    type='ImageClassifier',
    data_preprocessor=dict(
        type='ClsDataPreprocessor',
        mean=[123.675, 116.28, 103.53],
        std=[58.395, 57.12, 57.375],
        to_rgb=True,
    ),
    neck=dict(type='GlobalAveragePooling'),
    head=dict(type='MultiLabelLinearClsHead', loss=dict(type='CrossEntropyLoss', use_sigmoid=True)),
)

# the linear layer is new: ten times the backbone's rate
optim_wrapper = dict(
    type='OptimWrapper',
    constructor='MergedOptimWrapperConstructor',
    optimizer=dict(type='SGD', lr=1e-2, momentum=0.9, weight_decay=1e-4),
    paramwise_cfg=dict(custom_keys={'head.': dict(lr_mult=10.0)}),
)
param_scheduler = dict(type='PolyLR', power=0.9, eta_min=0.0, begin=0, by_epoch=False)
train_cfg = dict(type='IterBasedTrainLoop')
val_cfg = dict(type='ValLoop')
test_cfg = dict(type='TestLoop')

val_evaluator = [dict(type='AveragePrecision'), dict(type='MultiLabelMetric')]
# by class as well: the mean hides which classes the maps can find
test_evaluator = [*val_evaluator, dict(type='AveragePrecision', average=None)]

env_cfg = dict(
    cudnn_benchmark=True,
    mp_cfg=dict(mp_start_method='fork', opencv_num_threads=0),
    dist_cfg=dict(backend='nccl'),
)
sync_bn = 'torch'
randomness = dict(seed=0)
default_hooks = dict(
    timer=dict(type='IterTimerHook'),
    logger=dict(type='MainProcessLoggerHook', interval=20, log_metric_by_epoch=False),
    param_scheduler=dict(type='ParamSchedulerHook'),
    checkpoint=dict(
        type='CheckpointHook', by_epoch=False, save_best='multi-label/mAP', max_keep_ckpts=1
    ),
    sampler_seed=dict(type='DistSamplerSeedHook'),
    # what protects a run is named here, so that it holds under every launcher
    preflight=dict(type='PreflightHook'),
    findings=dict(type='FindingsHook'),
    resume=dict(type='ResumeHook'),
    statistics=dict(type='SyncStatisticsHook'),
)
custom_hooks = [dict(type='IterationSeedHook')]
visualizer = dict(
    type='UniversalVisualizer',
    vis_backends=[dict(type='LocalVisBackend'), dict(type='TensorboardVisBackend')],
)
log_processor = dict(by_epoch=False)
log_level = 'INFO'
load_from = None
resume = False
