# Like cct.py, for the auxiliary decoders of every domain.
_base_ = ['./cct.py']
# a step uses the decoders of one domain
find_unused_parameters = True
default_hooks = dict(
    checkpoint=dict(save_best='mIoU_avg'),
    ramp_up=dict(attribute='domains.*.auxiliary_head.loss_consistency.loss_weight'),
)
visualizer = dict(type='MultiDomainVisualizer')
