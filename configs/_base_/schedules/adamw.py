# The usual fine-tuning of transformers and ConvNeXt: no weight decay on norms and position
# embeddings, ten times the backbone's rate for the rest, and a linear decay.
optim_wrapper = dict(
    type='OptimWrapper',
    constructor='MergedOptimWrapperConstructor',
    optimizer=dict(type='AdamW', lr=6e-5, betas=(0.9, 0.999), weight_decay=0.01),
    paramwise_cfg=dict(
        custom_keys={
            'absolute_pos_embed': dict(decay_mult=0.0),
            'relative_position_bias_table': dict(decay_mult=0.0),
            'norm': dict(decay_mult=0.0),
            'neck.': dict(lr_mult=10.0),
            'head.': dict(lr_mult=10.0),
            'heads.': dict(lr_mult=10.0),
        }
    ),
)
param_scheduler = dict(type='PolyLR', power=1.0, eta_min=0.0, begin=0, by_epoch=False)
