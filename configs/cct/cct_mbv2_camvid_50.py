# Small enough for two CPU cores.
_base_ = [
    '../_base_/models/cct_mbv2-d8.py',
    '../_base_/datasets/camvid_168x224.py',
    '../_base_/schedules/cct_teacher.py',
    '../_base_/schedules/sgd_poly.py',
]
train_dataloader = dict(dataset=dict(num_labeled=50))
train_cfg = dict(max_iters=1000, val_interval=250)
