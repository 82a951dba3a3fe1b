# The demo's CCT with pseudo labels. They belong to files, so the unlabelled scenes are files here.
_base_ = '../../configs/demo/cct_shapes.py'

root = 'work_dirs/scenes'
model = dict(auxiliary_head=dict(loss_weak=dict(type='WeakCrossEntropy', loss_weight=0.4)))
train_dataloader = dict(
    dataset=dict(
        unlabeled=dict(
            _delete_=True,
            type='FolderDataset',
            data_root=root,
            classes=('background', 'disc', 'box', 'triangle', 'star', 'cross', 'ring'),
            image_dir='images/train',
            subset='unlabeled',
            ann_file=f'{root}/12_unlabeled.txt',
            pipeline=[
                dict(type='LoadImageFromFile'),
                dict(
                    type='LoadPseudoLabels',
                    image_dir=f'{root}/images/train',
                    label_dir=f'{root}/pseudo/labels',
                ),
                _base_.random_resize,
                _base_.crop,
                _base_.flip,
                dict(type='PackPseudoLabels'),
            ],
        )
    )
)
default_hooks = dict(
    weak_ramp_up=dict(
        type='RampUpHook',
        attribute='auxiliary_head.loss_weak.loss_weight',
        schedule='exp',
        fraction=0.1,
    )
)
