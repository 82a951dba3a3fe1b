_base_ = ['../cct/cct_mbv2-jpu_idd-lite_20.py', '../_base_/methods/unimatch-v2.py']
train_dataloader = dict(
    dataset=dict(unlabeled=dict(pipeline=[*_base_.unlabeled_pipeline, _base_.strong_views]))
)
model = _base_.method
custom_hooks = [*_base_.method_hooks, dict(type='FreezeHook')]
