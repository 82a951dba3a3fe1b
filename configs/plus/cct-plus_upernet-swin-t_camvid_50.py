_base_ = ['../cct/cct_upernet-swin-t_camvid_50.py', '../_base_/methods/cct-plus.py']
train_dataloader = dict(
    dataset=dict(unlabeled=dict(pipeline=[*_base_.unlabeled_pipeline, _base_.strong_views]))
)
fcn, bank = _base_.model.auxiliary_head
model = dict(
    _base_.method,
    auxiliary_head=[fcn, dict(bank, **_base_.method.auxiliary_head)],
)
custom_hooks = _base_.method_hooks
