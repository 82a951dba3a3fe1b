# Like adamw.py, with a warm-up of 1500 iterations.
_base_ = './adamw.py'
param_scheduler = [
    dict(type='LinearLR', start_factor=1e-6, begin=0, end=1500, by_epoch=False),
    dict(type='PolyLR', power=1.0, eta_min=0.0, begin=1500, by_epoch=False),
]
