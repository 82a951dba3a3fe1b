"""Settings that depend on the machine: as many loading workers as it has cores for."""

import os

import pytest
import torch
from mmengine.config import Config

from mmseg_cct.apis import device
from mmseg_cct.apis.device import (
    compile_encoders,
    fit_to_device,
    fit_workers,
    number_the_only_gpu,
    use_half_precision,
)
from mmseg_cct.config.load import load_config
from mmseg_cct.errors import UserError


def fitted(monkeypatch, cores, on='cpu', train='SemiSegDataset', ranks=1, chosen=()):
    monkeypatch.setattr('os.sched_getaffinity', lambda _: range(cores), raising=False)
    monkeypatch.setattr(device, 'get_device', lambda: on)
    monkeypatch.setenv('LOCAL_WORLD_SIZE', str(ranks))
    loaders = {
        f'{split}_dataloader': dict(num_workers=4, dataset=dict(type=kind))
        for split, kind in (('train', train), ('val', 'FolderDataset'))
    }
    config = Config(dict(loaders, test_dataloader=None))
    fit_workers(config, chosen)
    assert config.train_dataloader.timeout > 60  # seconds without a batch: it ends
    return config.train_dataloader.num_workers, config.val_dataloader.num_workers


@pytest.mark.parametrize(
    ('machine', 'workers'),
    [
        (dict(cores=1), (1, 1)),
        (dict(cores=6), (3, 3)),
        (dict(cores=6, on='cuda', ranks=2), (3, 3)),
        # the images of MMSegmentation's sets would be others with other workers
        (dict(cores=2, train='ADE20KDataset'), (4, 1)),
        (dict(cores=2, chosen=['train_dataloader.num_workers']), (4, 1)),
    ],
)
def test_workers_are_no_more_than_cores_for_them(machine, workers, monkeypatch):
    assert fitted(monkeypatch, **machine) == workers


@pytest.mark.parametrize(
    ('on', 'capability', 'dtype', 'wrapper'),
    [
        ('cpu', None, None, 'BFloat16OptimWrapper'),
        ('cuda', (7, 5), None, 'AmpOptimWrapper'),  # Turing
        ('cuda', (8, 0), None, 'BFloat16OptimWrapper'),  # Ampere
        ('cuda', (8, 0), 'bfloat16', 'BFloat16OptimWrapper'),
        ('cuda', (8, 0), 'float16', 'AmpOptimWrapper'),
    ],
)
def test_half_precision_is_bfloat16_where_the_device_has_it(
    monkeypatch, on, capability, dtype, wrapper
):
    monkeypatch.setattr(device, 'get_device', lambda: on)
    monkeypatch.setattr(torch.cuda, 'get_device_capability', lambda: capability)
    config = Config(dict(optim_wrapper=dict(dtype=dtype) if dtype else {}))
    use_half_precision(config)
    wrapped = config.optim_wrapper
    is_scaled = wrapper == 'AmpOptimWrapper'
    assert wrapped.type == wrapper and ('loss_scale' in wrapped) == is_scaled
    assert wrapped.get('dtype') == (dtype if is_scaled else None)


@pytest.mark.parametrize('on', ['cpu', 'cuda'])
def test_what_the_device_decides(cct, monkeypatch, on):
    monkeypatch.setattr(device, 'get_device', lambda: on)
    layout = {'default_hooks.memory_format': dict(type='ChannelsLastHook', enabled=None)}
    config = load_config(str(cct.file), layout)
    compile_encoders(config)
    hooks = config.default_hooks
    assert hooks.compile_encoder.type == 'CompileEncoderHook'
    assert hooks.memory_format.enabled is (True if on == 'cuda' else None)
    fit_to_device(config, 'none')
    assert config.train_dataloader.get('pin_memory') is (True if on == 'cuda' else None)


def test_distributed_on_the_cpu_drops_sync_bn_and_device_ids(cct):
    config = load_config(str(cct.file), {})
    norms = [dict(type='SyncBN', requires_grad=True), dict(type='GN', num_groups=4)]
    config.model.update(norm_cfg=norms[0], neck=dict(convs=[dict(norm_cfg=each) for each in norms]))
    fit_to_device(config, 'pytorch')
    assert 'sync_bn' not in config
    assert config.model.norm_cfg == dict(type='BN', requires_grad=True)
    assert [conv.norm_cfg.type for conv in config.model.neck.convs] == ['BN', 'GN']
    assert config.model_wrapper_cfg['device_ids'] is None


@pytest.mark.parametrize(('visible', 'number'), [(1, '0'), (8, '3')])
def test_the_only_gpu_that_a_task_sees_is_number_0(visible, number, monkeypatch):
    monkeypatch.setattr(torch.cuda, 'device_count', lambda: visible)
    monkeypatch.setenv('LOCAL_RANK', '3')
    monkeypatch.setenv('SLURM_LOCALID', '3')  # which mmengine reads
    number_the_only_gpu()
    assert (os.environ['LOCAL_RANK'], os.environ['SLURM_LOCALID']) == (number, number)


CHECKPOINTED = {'model.backbone.with_cp': True}


@pytest.mark.parametrize(
    ('options', 'key'),
    [
        ({'runner_type': 'FlexibleRunner'}, 'runner_type=FlexibleRunner'),  # for FSDP
        ({**CHECKPOINTED, 'model.domains': dict(sea={}, land={})}, 'model.backbone.with_cp=True'),
    ],
)
def test_settings_that_exclude_each_other_on_several_processes(cct, options, key):
    config = load_config(str(cct.file), {})
    config.merge_from_dict(options)
    with pytest.raises(UserError) as error:
        fit_to_device(config, 'pytorch')
    assert error.value.problems[0].key == key
