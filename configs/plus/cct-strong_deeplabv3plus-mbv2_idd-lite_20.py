_base_ = ['../cct/cct_deeplabv3plus-mbv2_idd-lite_20.py', '../_base_/methods/cct-strong.py']
train_dataloader = dict(
    dataset=dict(unlabeled=dict(pipeline=[*_base_.unlabeled_pipeline, _base_.strong_views]))
)
model = _base_.method
custom_hooks = [*_base_.custom_hooks, _base_.calibration]
