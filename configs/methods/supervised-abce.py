# The baseline of cct-abce.
_base_ = ['./supervised.py']
model = dict(decode_head=dict(loss_decode=[dict(type='BootstrappedCrossEntropy', threshold=0.9)]))
default_hooks = dict(
    bootstrap=dict(
        type='RampUpHook',
        attribute='decode_head.loss_decode.0.progress',
        schedule='log',
        fraction=0.4,
    )
)
