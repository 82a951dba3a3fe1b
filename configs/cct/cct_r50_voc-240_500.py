# The setting of the paper's ablation on VOC: the longer side to 300 × (0.5 to 2.0), a 240×240 crop.
_base_ = [
    '../_base_/models/cct_r50-d8.py',
    '../_base_/datasets/voc.py',
    '../_base_/schedules/cct.py',
    '../_base_/schedules/sgd_poly.py',
]
train_dataloader = dict(dataset=dict(num_labeled=500))
epochs, val_epochs = 50, 5  # passes over the unlabelled images
image_size, crop_size = (300, 300), (240, 240)
