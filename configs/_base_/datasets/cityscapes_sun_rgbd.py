# Cityscapes and SUN RGB-D: no common class.
_base_ = ['../domains/cityscapes.py', '../domains/sun_rgbd.py', './multi_domain.py']

domains = dict(cityscapes=_base_.cityscapes, sun=_base_.sun)

train_dataloader = dict(dataset=dict(domains={n: domain.train for n, domain in domains.items()}))
val_dataloader = dict(dataset=dict(domains={n: domain.val for n, domain in domains.items()}))
test_dataloader = dict(dataset=dict(domains={n: domain.test for n, domain in domains.items()}))
tta_pipeline = {n: domain.tta_pipeline for n, domain in domains.items()}
