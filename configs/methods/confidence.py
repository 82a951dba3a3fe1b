# CCT with confidence masking: the pixels whose target exceeds β = 0.5 alone.
model = dict(auxiliary_head=dict(loss_consistency=dict(confidence_threshold=0.5)))
