# UniMatch as its authors run it on Cityscapes: every pixel teaches.
_base_ = './unimatch.py'
model = dict(loss_strong=dict(threshold=0.0))
