# CCT whose auxiliary decoders see a strong view; the main decoder learns from labels alone.
_base_ = './cct-plus.py'
model = dict(loss_strong=dict(loss_weight=0.0), bank_on_strong=True)
