_base_ = './cct_mbv2-jpu_camvid-180x240_20.py'
train_dataloader = dict(dataset=dict(num_labeled=100))
train_cfg = dict(max_iters=2400)  # more labels take longer to learn
param_scheduler = dict(end=2400)
