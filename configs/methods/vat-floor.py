# I-VAT with the norm floor of the public code's formula.
model = dict(auxiliary_head=dict(perturbations=dict(vat=dict(norm_floor=1e-8))))
