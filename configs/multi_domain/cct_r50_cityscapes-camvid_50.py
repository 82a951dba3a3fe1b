# Cityscapes and CamVid, 50 labelled images of each.
_base_ = [
    '../_base_/models/cct_r50-d8.py',
    '../_base_/datasets/cityscapes_camvid.py',
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
    dataset=dict(domains=dict(cityscapes=dict(num_labeled=50), camvid=dict(num_labeled=50)))
)
# an epoch is one pass over the unlabelled images of Cityscapes, and as many iterations of CamVid
num_images = 2975
epochs, val_epochs = 50, 5
