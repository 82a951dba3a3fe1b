# UniMatch as on street scenes (its Cityscapes): every pixel teaches.
_base_ = './unimatch.py'
model = dict(loss_strong=dict(threshold=0.0))
