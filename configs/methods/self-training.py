# The supervised baseline that also learns the masks of a preview (--weak-masks), on the strong view
# of cct-strong with CutMix.
_base_ = './cct-strong.py'
model = dict(
    type='SelfTrainingSegmentor',
    auxiliary_head=None,
    loss_strong=dict(type='ConfidentCrossEntropy'),
)
default_hooks = dict(teacher=None)
