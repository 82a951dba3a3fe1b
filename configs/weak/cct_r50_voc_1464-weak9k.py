# CCT on VOC with pseudo labels for its 9118 unlabelled images, the paper's best result. The encoder
# starts from the classifier; set another checkpoint in model.backbone.init_cfg.checkpoint.
_base_ = '../cct/cct_r50_voc_1464.py'

image_dir = f'{_base_.voc_root}/JPEGImages'
label_dir = 'work_dirs/pseudo_labels/voc_1464/labels'

model = dict(
    backbone=dict(
        init_cfg=dict(checkpoint='work_dirs/cam_r50_voc/iter_6610.pth', prefix='backbone.')
    ),
    auxiliary_head=dict(loss_weak=dict(type='WeakCrossEntropy', loss_weight=0.4)),
)

unlabeled_pipeline = [
    dict(type='LoadImageFromFile'),
    dict(type='LoadPseudoLabels', image_dir=image_dir, label_dir=label_dir),
    *_base_.unlabeled_pipeline[1:-1],
    dict(type='PackPseudoLabels'),
]
train_dataloader = dict(dataset=dict(unlabeled=dict(pipeline=unlabeled_pipeline)))
# ω_w: like ω_u, from 0 to λ_w over the first tenth of the training
default_hooks = dict(
    weak_ramp_up=dict(
        type='RampUpHook',
        attribute='auxiliary_head.loss_weak.loss_weight',
        schedule='exp',
        fraction=0.1,
    )
)
