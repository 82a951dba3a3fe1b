# CCT with ten times the learning rate for the auxiliary decoders: the loss is a mean over K
# decoders and C classes, so the gradient of each is small.
optim_wrapper = dict(
    constructor='MergedOptimWrapperConstructor', paramwise_cfg=dict(auxiliary_lr_mult=10.0)
)
