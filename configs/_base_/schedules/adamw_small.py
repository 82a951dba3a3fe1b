# For a small network: a high rate, a fifth of it for the backbone.
optim_wrapper = dict(
    type='OptimWrapper',
    constructor='MergedOptimWrapperConstructor',
    optimizer=dict(type='AdamW', lr=2e-3, weight_decay=1e-4),
    paramwise_cfg=dict(custom_keys={'backbone.': dict(lr_mult=0.2)}),
)
param_scheduler = dict(type='PolyLR', power=0.9, eta_min=0.0, begin=0, by_epoch=False)
