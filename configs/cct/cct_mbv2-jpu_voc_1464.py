# VOC with the model for small machines.
_base_ = [
    '../_base_/models/cct_mbv2-jpu.py',
    '../_base_/datasets/voc.py',
    '../_base_/schedules/cct_teacher.py',
    '../_base_/schedules/adamw_small.py',
]
train_dataloader = dict(dataset=dict(num_labeled=1464))
epochs, val_epochs = 50, 5  # passes over the unlabelled images
