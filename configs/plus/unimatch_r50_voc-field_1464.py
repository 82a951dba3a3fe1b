# UniMatch's streams on the field's split, which make_splits.py writes:
#   python tools/make_splits.py --from-unimatch DIR --out data/splits/voc_field
_base_ = ['../cct/cct_r50_voc_1464.py', '../_base_/methods/unimatch.py']
split_dir = 'data/splits/voc_field'
train_dataloader = dict(
    dataset=dict(
        labeled=dict(ann_file=f'{split_dir}/1464_labeled.txt'),
        unlabeled=dict(
            ann_file=f'{split_dir}/1464_unlabeled.txt',
            pipeline=[*_base_.unlabeled_pipeline, _base_.strong_views],
        ),
    )
)
model = _base_.method
custom_hooks = _base_.method_hooks
