# CCT whose auxiliary decoders see a strong view; the main decoder learns only from labels.
_base_ = './cct-plus.py'
model = dict(loss_strong=dict(loss_weight=0.0), bank_on_strong=True)
