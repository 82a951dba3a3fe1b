# CamVid and IDD Lite, 20 labelled images of each, in the setting of cct_mbv2-jpu_idd-lite_20.py: a
# run of minutes on one CPU core.
_base_ = [
    '../_base_/models/cct_mbv2-jpu.py',
    '../_base_/datasets/camvid_idd_lite.py',
    '../_base_/schedules/cct_few_labels.py',
    '../_base_/multi_domain_runtime.py',
]

model = dict(
    type='MultiDomainCCTSegmentor',
    decode_head=dict(norm_cfg=None),
    auxiliary_head=dict(position_fraction=0.5),
    domains=_base_.domain_models,
)

n_labeled = 20
max_iters = 2400  # 1200 of each domain

train_dataloader = dict(
    batch_size=8,
    num_workers=2,
    sampler=dict(batch_size=8),
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
train_cfg = dict(max_iters=max_iters, val_interval=600)
param_scheduler = dict(end=max_iters)
ramp, *other_hooks = _base_.custom_hooks
custom_hooks = [dict(ramp, attribute=f'domains.*.{ramp["attribute"]}'), *other_hooks]
default_hooks = dict(checkpoint=dict(interval=600))
