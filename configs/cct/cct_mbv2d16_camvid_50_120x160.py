# The studies' base: stride 16, and decoders that start from the identity, so that minutes on one
# CPU core are enough for labels to be what is short.
_base_ = [
    '../_base_/models/cct_mbv2-d16.py', '../_base_/datasets/camvid_120x160.py',
    '../_base_/schedules/cct.py', '../_base_/schedules/sgd_poly.py', '../_base_/default_runtime.py'
]

model = dict(
    data_preprocessor=dict(size=(128, 160)),  # padded to a multiple of the stride
    decode_head=dict(num_classes=11, kernel_init='identity'),
    auxiliary_head=dict(
        num_classes=11,
        kernel_init='identity',
        context_classes=('Sky', 'Building', 'Road', 'Pavement', 'Tree', 'Fence')))

n_labeled = 50
max_iters = 1000

train_dataloader = dict(
    dataset=dict(
        labeled=dict(ann_file=f'{_base_.split_dir}/{n_labeled}_labeled.txt'),
        unlabeled=dict(ann_file=f'{_base_.split_dir}/{n_labeled}_unlabeled.txt')))
train_cfg = dict(max_iters=max_iters, val_interval=250)
param_scheduler = dict(end=max_iters)
default_hooks = dict(checkpoint=dict(interval=250))
