default_scope = 'mmseg'
custom_imports = dict(imports=['mmseg_cct.plugin'], allow_failed_imports=False)

env_cfg = dict(
    cudnn_benchmark=True,
    mp_cfg=dict(mp_start_method='fork', opencv_num_threads=0),
    dist_cfg=dict(backend='nccl'),
)
# mmengine converts BN only in distributed training on GPUs
sync_bn = 'torch'
randomness = dict(seed=0)

default_hooks = dict(
    timer=dict(type='IterTimerHook'),
    logger=dict(type='MainProcessLoggerHook', interval=20, log_metric_by_epoch=False),
    param_scheduler=dict(type='ParamSchedulerHook'),
    checkpoint=dict(
        type='DurableCheckpointHook',
        by_epoch=False,
        save_best='mIoU',
        max_keep_ckpts=3,
    ),
    # what protects a run is named here, so that it holds under every launcher
    preflight=dict(type='PreflightHook'),
    findings=dict(type='FindingsHook'),
    resume=dict(type='ResumeHook'),
    nonfinite_loss=dict(type='NonFiniteLossHook'),
    # BatchNorm over the ranks of a distributed training without SyncBN
    statistics=dict(type='SyncStatisticsHook'),
    sampler_seed=dict(type='DistSamplerSeedHook'),
    # faster depthwise convolutions on a CPU; not measured on a GPU, where it stays off
    memory_format=dict(type='ChannelsLastHook', enabled=None),
    # halves the time of validation and test on a CPU
    fuse_conv_bn=dict(type='FuseConvBNHook', enabled=None),
    visualization=dict(type='SegVisualizationHook'),
)

vis_backends = [dict(type='LocalVisBackend'), dict(type='GroupedTensorboardVisBackend')]
visualizer = dict(type='SegLocalVisualizer', vis_backends=vis_backends, name='visualizer')
# what stands beside the losses is averaged over the same iterations
log_processor = dict(by_epoch=False, mean_pattern=r'loss|time|grad_norm|\baux\.')
log_level = 'INFO'
load_from = None
resume = False

# multi-scale inference (`--tta`): the scales and flips are the data set's `tta_pipeline`
tta_model = dict(type='SegTTAModel')
