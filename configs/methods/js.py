# CCT with the Jensen-Shannon divergence.
model = dict(auxiliary_head=dict(loss_consistency=dict(type='JSConsistency')))
