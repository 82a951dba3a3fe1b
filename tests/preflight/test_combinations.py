import pytest
import world

from mmseg_cct.preflight.combinations import training_problems

_TEACHER = dict(type='TeacherHook')
_EMA = dict(type='EMAHook')
_PLATEAU = dict(type='ReduceOnPlateauLR', monitor='mIoU', rule='greater', by_epoch=True)
CHECKPOINT, DATA = 'default_hooks.checkpoint', 'train_dataloader.dataset'
PLAIN, EPOCHS = 'SegDataPreProcessor', 'EpochBasedTrainLoop'


@pytest.mark.parametrize(
    ('changes', 'key'),
    [
        ({}, None),
        ({f'{DATA}.unlabeled': None, 'model.type': 'EncoderDecoder'}, None),
        ({'model.type': 'EncoderDecoder'}, "model.type='EncoderDecoder'"),
        ({'model.data_preprocessor.type': PLAIN}, f'model.data_preprocessor.type={PLAIN!r}'),
        ({f'{DATA}.labeled_per_unlabeled': 9}, f'{DATA}.labeled_per_unlabeled=9'),
        ({CHECKPOINT: dict(_delete_=True, type='CheckpointHook', save_best='mIoU')}, None),
        ({CHECKPOINT: dict(_delete_=True, type='DurableCheckpointHook')}, f'{CHECKPOINT}.by_epoch'),
        ({'train_cfg.type': EPOCHS, 'train_dataloader.sampler.type': 'X'}, None),
        ({'train_cfg.type': EPOCHS}, 'train_cfg'),
        ({'param_scheduler.0.by_epoch': True}, 'param_scheduler.0.by_epoch'),
        ({'param_scheduler.0': _PLATEAU}, None),
        ({'custom_hooks': [_EMA, _EMA]}, 'custom_hooks.1'),
        (
            {'default_hooks.teacher': dict(_TEACHER, evaluate='teacher'), 'custom_hooks': [_EMA]},
            'custom_hooks.0',
        ),
        ({'default_hooks.teacher': _TEACHER, 'custom_hooks': [_EMA]}, None),
    ],
)
def test_parts_of_a_training_go_together(changes, key):
    config = world.cct_config('')
    config.merge_from_dict(changes)
    assert [problem.key for problem in training_problems(config)] == [key] * (key is not None)
