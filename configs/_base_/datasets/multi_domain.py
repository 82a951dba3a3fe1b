# Loaders and metrics for several domains. A config adds `domains` to each of the three sets.
batch_size = 4  # of one branch; the batches of all domains have this size

train_dataloader = dict(
    batch_size=batch_size,
    num_workers=4,
    persistent_workers=True,
    sampler=dict(type='MultiDomainSampler', batch_size=batch_size, shuffle=True),
    dataset=dict(type='MultiDomainDataset'),
)
# the batch, of all processes together, that the learning rate is for
auto_scale_lr = dict(enable=False, base_batch_size=batch_size)
val_dataloader = dict(
    batch_size=1,
    num_workers=4,
    persistent_workers=True,
    sampler=dict(type='DefaultSampler', shuffle=False),
    dataset=dict(type='MultiDomainConcatDataset'),
)
test_dataloader = val_dataloader

# several processes gather their results in memory, on CPUs too; mmengine's default 'cpu' writes
# files to a folder that all machines have to see
val_evaluator = dict(type='MultiDomainIoUMetric', iou_metrics=['mIoU'], collect_device='gpu')
test_evaluator = val_evaluator
