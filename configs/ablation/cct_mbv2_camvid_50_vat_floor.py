# I-VAT normalised as in the public code, which makes r_adv shorter than ε.
_base_ = '../cct/cct_mbv2_camvid_50.py'
model = dict(auxiliary_head=dict(perturbations=dict(vat=dict(norm_floor=1e-8))))
