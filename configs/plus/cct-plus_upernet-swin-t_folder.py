_base_ = ['../cct/cct_upernet-swin-t_folder.py', '../_base_/methods/cct-plus.py']
train_dataloader = dict(
    dataset=dict(unlabeled=dict(pipeline=[*_base_.unlabeled_pipeline, _base_.strong_views]))
)
model = _base_.method
custom_hooks = _base_.method_hooks
