# The supervised loss is the annealed bootstrapped cross-entropy, as in cct-abce_r50_camvid_50.py.
_base_ = './cct_mbv2_camvid_50-weak.py'
num_classes = 11
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
