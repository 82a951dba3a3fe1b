from types import SimpleNamespace

import pytest
import world

from mmseg_cct.models import CutMix
from mmseg_cct.preflight.combinations import training_problems, warn_of_unmixed_images

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


@pytest.mark.parametrize(
    ('batch_size', 'ratio', 'alone'), [(1, 1, True), (2, 1, False), (3, 2, True), (4, 2, False)]
)
def test_cutmix_of_one_image_a_process_is_told(messages, batch_size, ratio, alone):
    dataset = SimpleNamespace(labeled_per_unlabeled=ratio)
    dataloader = SimpleNamespace(batch_size=batch_size, dataset=dataset)
    warn_of_unmixed_images(SimpleNamespace(cutmix=None), dataloader)
    assert not messages
    warn_of_unmixed_images(SimpleNamespace(cutmix=CutMix()), dataloader)
    key = f'train_dataloader.batch_size={batch_size}: '
    assert [line.startswith(key) for line in messages] == [True] * alone
