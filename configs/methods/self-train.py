# The student of tools/self_train.py, which sets the masks of its teacher: the labelled images, and
# calm strong views of the others with those masks.
_base_ = './cct-plus.py'
model = dict(
    _delete_=True,
    type='SelfTrainingSegmentor',
    auxiliary_head=None,
    cutmix=dict(type='CutMix'),
)
default_hooks = dict(teacher=None, calibration=None)
