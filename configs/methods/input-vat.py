# VAT on the images, with CCT's ramp.
model = dict(
    type='InputVATSegmentor',
    auxiliary_head=None,
    # a tenth of CCT's weight: with the full weight, VAT on the images loses (docs/experiments.md)
    loss_consistency=dict(type='KLConsistency', loss_weight=3.0, reference_classes=21),
    epsilon=2.0,
)
default_hooks = dict(ramp_up=dict(attribute='loss_consistency.loss_weight'), teacher=None)
