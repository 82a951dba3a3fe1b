# CamVid and IDD Lite at small sizes: for two CPU cores.
_base_ = ['../domains/camvid_120x160.py', '../domains/idd_lite_112x160.py', './multi_domain.py']

domains = dict(camvid=_base_.camvid, idd=_base_.idd)

train_dataloader = dict(dataset=dict(domains={n: domain.train for n, domain in domains.items()}))
val_dataloader = dict(dataset=dict(domains={n: domain.val for n, domain in domains.items()}))
test_dataloader = dict(dataset=dict(domains={n: domain.test for n, domain in domains.items()}))
tta_pipeline = {n: domain.tta_pipeline for n, domain in domains.items()}
