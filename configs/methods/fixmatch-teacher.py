# FixMatch at its best here: an EMA teacher labels the pixels, and the strong view is calm.
_base_ = './cct-plus.py'
model = dict(
    auxiliary_head=None,
    loss_strong=dict(_delete_=True, type='ConfidentCrossEntropy', loss_weight=1.0, threshold=0.95),
)
