# CCT with the KL divergence.
model = dict(auxiliary_head=dict(loss_consistency=dict(type='KLConsistency')))
