_base_ = [
    '../_base_/models/cct_r50-d8.py',
    '../_base_/datasets/camvid.py',
    '../_base_/schedules/cct_teacher.py',
    '../_base_/schedules/sgd_poly.py',
]
train_dataloader = dict(dataset=dict(num_labeled=50))
epochs, val_epochs = 50, 5  # passes over the unlabelled images
