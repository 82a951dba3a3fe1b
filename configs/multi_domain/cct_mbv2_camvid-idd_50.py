# CamVid and IDD Lite, 50 labelled images of each, small enough for two CPU cores.
_base_ = [
    '../_base_/models/cct_mbv2-d8.py',
    '../_base_/datasets/camvid_120x160_idd_lite_112x160.py',
    '../_base_/schedules/cct_multi_domain.py',
    '../_base_/schedules/sgd_poly.py',
    '../_base_/multi_domain_runtime.py',
]

model = dict(type='MultiDomainCCTSegmentor', domains=_base_.domain_models)

n_labeled = 50
max_iters = 500  # 250 of each domain

train_dataloader = dict(
    num_workers=2,
    dataset=dict(
        domains={
            name: {
                branch: dict(ann_file=f'{folder}/{n_labeled}_{branch}.txt')
                for branch in ('labeled', 'unlabeled')
            }
            for name, folder in _base_.split_dirs.items()
        }
    ),
)
val_dataloader = dict(num_workers=2)
test_dataloader = dict(num_workers=2)
train_cfg = dict(max_iters=max_iters, val_interval=250)
param_scheduler = dict(end=max_iters)
default_hooks = dict(checkpoint=dict(interval=250))
