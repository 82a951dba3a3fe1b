# Cityscapes and CamVid: partly common classes.
_base_ = ['../domains/cityscapes.py', '../domains/camvid.py', './multi_domain.py']

domains = dict(cityscapes=_base_.cityscapes, camvid=_base_.camvid)

train_dataloader = dict(dataset=dict(domains={n: domain.train for n, domain in domains.items()}))
val_dataloader = dict(dataset=dict(domains={n: domain.val for n, domain in domains.items()}))
test_dataloader = dict(dataset=dict(domains={n: domain.test for n, domain in domains.items()}))
tta_pipeline = {n: domain.tta_pipeline for n, domain in domains.items()}
