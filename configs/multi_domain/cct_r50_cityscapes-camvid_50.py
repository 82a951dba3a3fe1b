# Cityscapes and CamVid, 50 labelled images of each.
_base_ = [
    '../_base_/models/cct_r50-d8.py',
    '../_base_/datasets/cityscapes_camvid.py',
    '../_base_/schedules/cct_multi_domain.py',
    '../_base_/schedules/sgd_poly.py',
    '../_base_/multi_domain_runtime.py',
]

model = dict(
    type='MultiDomainCCTSegmentor',
    # the paper's λ_u = 30, whatever the number of classes
    auxiliary_head=dict(loss_consistency=dict(reference_classes=None)),
    domains=_base_.domain_models,
)

n_labeled = 50
# one pass over the unlabelled images of Cityscapes, and as many iterations of CamVid
epoch = 2 * ((2975 - n_labeled) // _base_.batch_size)
max_iters = 50 * epoch

train_dataloader = dict(
    dataset=dict(
        domains={
            name: {
                branch: dict(ann_file=f'{folder}/{n_labeled}_{branch}.txt')
                for branch in ('labeled', 'unlabeled')
            }
            for name, folder in _base_.split_dirs.items()
        }
    )
)
train_cfg = dict(max_iters=max_iters, val_interval=5 * epoch)
param_scheduler = dict(end=max_iters)
default_hooks = dict(checkpoint=dict(interval=5 * epoch))
