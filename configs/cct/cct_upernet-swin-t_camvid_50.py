_base_ = [
    '../_base_/models/cct_upernet-swin-t.py',
    '../_base_/datasets/camvid.py',
    '../_base_/schedules/cct_teacher.py',
    '../_base_/schedules/adamw_warm_up.py',
]
train_dataloader = dict(dataset=dict(num_labeled=50))
epochs, val_epochs = 50, 5  # passes over the unlabelled images
warm_up, decay = _base_.param_scheduler
param_scheduler = [dict(warm_up, end=31), dict(decay, begin=31)]  # one pass
