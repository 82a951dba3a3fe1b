# The paper's optimisation, with a tenth of the rate for the backbone as in the authors' code. A
# config adds the `end` of the schedule, that of the training.
optim_wrapper = dict(
    type='OptimWrapper',
    constructor='MergedOptimWrapperConstructor',
    optimizer=dict(type='SGD', lr=1e-2, momentum=0.9, weight_decay=1e-4),
    paramwise_cfg=dict(custom_keys={'backbone.': dict(lr_mult=0.1)}),
)
param_scheduler = dict(type='PolyLR', power=0.9, eta_min=0.0, begin=0, by_epoch=False)
