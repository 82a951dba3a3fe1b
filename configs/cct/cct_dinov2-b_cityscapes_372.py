_base_ = [
    '../_base_/models/cct_dinov2-b.py',
    '../_base_/datasets/cityscapes.py',
    '../_base_/schedules/cct_teacher.py',
    '../_base_/schedules/adamw_vit.py',
]
train_dataloader = dict(dataset=dict(num_labeled=372))
epochs, val_epochs = 50, 5  # passes over the unlabelled images
