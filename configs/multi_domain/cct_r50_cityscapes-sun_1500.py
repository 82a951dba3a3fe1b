# Cityscapes and SUN RGB-D, 1500 labelled images of each.
_base_ = [
    '../_base_/models/cct_r50-d8.py',
    '../_base_/datasets/cityscapes_sun_rgbd.py',
    '../_base_/schedules/cct_multi_domain.py',
    '../_base_/schedules/sgd_poly.py',
]
model = dict(
    type='MultiDomainCCTSegmentor',
    # the paper's λ_u = 30, whatever the number of classes
    auxiliary_head=dict(loss_consistency=dict(reference_classes=None)),
    domains=_base_.domain_models,
)
train_dataloader = dict(
    dataset=dict(domains=dict(cityscapes=dict(num_labeled=1500), sun=dict(num_labeled=1500)))
)
# an epoch is one pass over the unlabelled images of SUN RGB-D, and as many of Cityscapes
num_images = 5285
epochs, val_epochs = 100, 5  # as in the paper; 50 for all other data
