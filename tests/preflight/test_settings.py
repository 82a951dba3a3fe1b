import pytest
import torch
import world
from mmengine.runner.checkpoint import CheckpointLoader
from mmseg.registry import MODELS
from web import serve

from mmseg_cct.errors import UserError
from mmseg_cct.preflight.settings import (
    check_pretrained_weights,
    fetch_pretrained_weights,
    training_problems,
)

_TEACHER = dict(type='TeacherHook')
_EMA = dict(type='EMAHook')
_PLATEAU = dict(type='ReduceOnPlateauLR', monitor='mIoU', rule='greater', by_epoch=True)
CHECKPOINT, EPOCHS = 'default_hooks.checkpoint', 'EpochBasedTrainLoop'


@pytest.mark.parametrize(
    ('changes', 'key'),
    [
        ({}, None),
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
def test_what_would_train_otherwise_than_meant(changes, key):
    config = world.cct_config('')
    config.merge_from_dict(changes)
    assert [problem.key for problem in training_problems(config)] == [key] * (key is not None)


NETWORK = dict(type='mmseg.ResNet', depth=18, base_channels=4, stem_channels=4)


@pytest.fixture
def weights(tmp_path):
    """Saves the weights of a network, as a change makes them, and gives the file."""

    def save(change=lambda state: state, **settings):
        state = MODELS.build({**NETWORK, **settings}).state_dict()
        torch.save(dict(state_dict=change(dict(state))), tmp_path / 'w.pth')
        return str(tmp_path / 'w.pth')

    return save


def network(file, **init):
    init_cfg = dict(type='Pretrained', checkpoint=file, **init)
    return dict(type='EncoderDecoder', backbone=dict(NETWORK, init_cfg=init_cfg))


def renamed(prefix):
    return lambda state: {prefix + name: value for name, value in state.items()}


def test_weights_that_fit_pass(weights):
    check_pretrained_weights(network(weights(renamed('module.'))))
    check_pretrained_weights(network(weights(renamed('backbone.')), prefix='backbone.'))
    # a classifier on top, and a part that is missing
    with_more = weights(lambda state: {**state, 'fc.weight': torch.ones(10, 32)})
    check_pretrained_weights(network(with_more))
    check_pretrained_weights(dict(backbone=dict(NETWORK)))


@pytest.mark.parametrize(
    ('change', 'settings'),
    [(dict, dict(base_channels=8)), (renamed('other_'), {}), (renamed('backbone.'), {})],
)
def test_weights_of_another_network_are_refused(weights, change, settings):
    with pytest.raises(UserError) as caught:
        check_pretrained_weights(network(weights(change, **settings)))
    (problem,) = caught.value.problems
    assert str(problem.key).startswith('model.backbone.init_cfg: ')


def model(checkpoint):
    return {'backbone': {'type': 'X', 'init_cfg': {'type': 'Pretrained', 'checkpoint': checkpoint}}}


def test_what_there_is_and_what_others_fetch_passes(tmp_path, monkeypatch):
    fetch_pretrained_weights({'backbone': {'init_cfg': [{'type': 'Kaiming', 'layer': 'Conv2d'}]}})
    fetch_pretrained_weights(model('s3://bucket/weights.pth'))  # mmengine will
    (tmp_path / 'weights.pth').touch()
    fetch_pretrained_weights(model(str(tmp_path / 'weights.pth')))
    monkeypatch.setenv('LOCAL_RANK', '1')  # one process per machine downloads
    fetch_pretrained_weights(model('http://127.0.0.1:9/never.pth'))


@pytest.mark.parametrize(
    ('config', 'key'),
    [
        ({'pretrained': 'gone.pth'}, 'model.pretrained'),
        (
            {'heads': [{'init_cfg': [{'type': 'Pretrained', 'checkpoint': 'gone.pth'}]}]},
            'model.heads.0.init_cfg.0.checkpoint',
        ),
        (model('open-mmlab://resnet51'), 'model.backbone.init_cfg.checkpoint'),
    ],
)
def test_the_key_of_what_is_missing_is_named(config, key):
    with pytest.raises(UserError, match=f'^{key}: '):
        fetch_pretrained_weights(config)


def test_a_download_lands_where_mmengine_looks(tmp_path, monkeypatch):
    monkeypatch.setattr(torch.hub, '_hub_dir', str(tmp_path / 'hub'))
    torch.save({'a': torch.ones(1)}, tmp_path / 'tiny.pth')
    with serve(tmp_path) as address:
        url = f'{address}/tiny.pth?x=1'
        fetch_pretrained_weights(model(url))
        assert (tmp_path / 'hub/checkpoints/tiny.pth').is_file()
        (tmp_path / 'tiny.pth').unlink()  # a second download would fail
        assert CheckpointLoader.load_checkpoint(url)['a'] == 1
        fetch_pretrained_weights(model(url))
