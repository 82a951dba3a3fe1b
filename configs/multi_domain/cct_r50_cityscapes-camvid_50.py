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
# 50 epochs over the 2925 unlabelled images of Cityscapes, 731 iterations each, and as many
# iterations of CamVid
train_cfg = dict(max_iters=73100, val_interval=7310)
param_scheduler = dict(end=73100)
