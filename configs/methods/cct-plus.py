# CCT+: the main decoder also learns from the strong view, by the squared error to the teacher; the
# auxiliary decoders see the weak view. Long trainings can drift (docs/methods.md): cct-strong does
# not.
_base_ = './cct-strong.py'
model = dict(type='CCTPlusSegmentor', loss_strong=dict(type='ConfidentMSE', loss_weight=1.0))
