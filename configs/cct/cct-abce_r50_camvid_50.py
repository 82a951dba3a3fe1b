# The supervised loss is the annealed bootstrapped cross-entropy: η rises from 1/C to 0.9 over the
# first 40 % of the training, on a log schedule.
_base_ = './cct_r50_camvid_50.py'
num_classes = 11
# a list takes the place of the plain cross-entropy; a dict would be merged with its arguments
model = dict(
    decode_head=dict(loss_decode=[dict(type='BootstrappedCrossEntropy', threshold=1 / num_classes)])
)
custom_hooks = [
    *_base_.custom_hooks,
    dict(
        type='RampUpHook',
        attribute='decode_head.loss_decode.0.threshold',
        schedule='log',
        start=1 / num_classes,
        end=0.9,
        fraction=0.4,
    ),
]
