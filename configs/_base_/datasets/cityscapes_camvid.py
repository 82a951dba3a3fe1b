# Cityscapes and CamVid: some classes in common.
# (no import statement: mmengine would take it for a lazy-import config)

_base_ = './multi_domain.py'

__load = __import__('mmengine').Config.fromfile
__domains = dict(
    cityscapes=__load('{{ fileDirname }}/../domains/cityscapes.py'),
    camvid=__load('{{ fileDirname }}/../domains/camvid.py'),
)
# each domain's part of the model, for the config on top of this one
domain_models = {name: domain.model for name, domain in __domains.items()}

train_dataloader = dict(dataset=dict(domains={n: d.train for n, d in __domains.items()}))
val_dataloader = dict(dataset=dict(domains={n: d.val for n, d in __domains.items()}))
test_dataloader = dict(dataset=dict(domains={n: d.test for n, d in __domains.items()}))
tta_pipeline = {n: d.tta_pipeline for n, d in __domains.items()}
