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
# 100 epochs, as in the paper (50 for all other data), over the 3785 unlabelled images of SUN RGB-D,
# 946 iterations each, and as many of Cityscapes
train_cfg = dict(max_iters=189200, val_interval=9460)
param_scheduler = dict(end=189200)
