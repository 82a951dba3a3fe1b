# UniMatch V2's fine-tuning of DINOv2: 5e-6 for the transformer, forty times that for the rest.
optim_wrapper = dict(
    type='OptimWrapper',
    constructor='MergedOptimWrapperConstructor',
    optimizer=dict(type='AdamW', lr=5e-6, betas=(0.9, 0.999), weight_decay=0.01),
    paramwise_cfg=dict(
        custom_keys={
            'neck.': dict(lr_mult=40.0),
            'head.': dict(lr_mult=40.0),
            'heads.': dict(lr_mult=40.0),
        },
    ),
)
param_scheduler = dict(type='PolyLR', power=0.9, eta_min=0.0, begin=0, by_epoch=False)
