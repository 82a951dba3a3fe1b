# The student of tools/self_train.py, which sets the teacher's masks. It learns from the labelled
# images, and from calm strong views of the others with those masks.
_base_ = './cct-plus.py'
model = dict(
    _delete_=True,
    type='SelfTrainingSegmentor',
    auxiliary_head=None,
    cutmix=dict(type='CutMix'),
)
default_hooks = dict(teacher=None)
