# CamVid and IDD Lite, 20 labelled images of each, in the setting of cct_mbv2-jpu_idd-lite_20.py: a
# run of minutes on one CPU core.
_base_ = [
    '../_base_/models/cct_mbv2-jpu.py',
    '../_base_/datasets/camvid_idd_lite.py',
    '../_base_/schedules/cct_few_labels.py',
]
model = dict(
    type='MultiDomainCCTSegmentor',
    decode_head=dict(norm_cfg=None),
    auxiliary_head=dict(position_fraction=0.5),
    domains=_base_.domain_models,
)
train_dataloader = dict(
    batch_size=8,
    num_workers=2,
    sampler=dict(batch_size=8),
    dataset=dict(domains=dict(camvid=dict(num_labeled=20), idd=dict(num_labeled=20))),
)
auto_scale_lr = dict(base_batch_size=8)
val_dataloader = dict(num_workers=2)
test_dataloader = dict(num_workers=2)
train_cfg = dict(max_iters=2400, val_interval=600)  # 1200 of each domain
param_scheduler = dict(end=2400)
find_unused_parameters = True  # a step uses the decoders of one domain
default_hooks = dict(
    checkpoint=dict(save_best='mIoU_avg'),
    ramp_up=dict(attribute='domains.*.auxiliary_head.loss_consistency.loss_weight'),
)
visualizer = dict(type='MultiDomainVisualizer')
