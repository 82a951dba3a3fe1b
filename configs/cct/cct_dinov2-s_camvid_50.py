_base_ = [
    '../_base_/models/cct_dinov2-s.py',
    '../_base_/datasets/camvid.py',
    '../_base_/schedules/cct_teacher.py',
    '../_base_/schedules/adamw_vit.py',
]
train_dataloader = dict(dataset=dict(num_labeled=50))
epochs, val_epochs = 50, 5  # passes over the unlabelled images
model = dict(data_preprocessor=dict(size=(368, 480)))  # 360, padded to a multiple of 16
