# CCT with confidence masking: only pixels whose target exceeds β = 0.5 count.
model = dict(auxiliary_head=dict(loss_consistency=dict(confidence_threshold=0.5)))
