# CCT whose supervised loss is the annealed bootstrapped cross-entropy: η rises from 1/C to 0.9 over
# the first 40 % of the training, on a log schedule (Eq. 4).
# A list replaces the plain cross-entropy; a dict would be merged with its arguments.
model = dict(decode_head=dict(loss_decode=[dict(type='BootstrappedCrossEntropy', threshold=0.9)]))
default_hooks = dict(
    bootstrap=dict(
        type='RampUpHook',
        attribute='decode_head.loss_decode.0.progress',
        schedule='log',
        fraction=0.4,
    )
)
