"""Device-dependent settings: DDP, SyncBN and mixed precision.

Functions change the config that they get.
"""

import os
from collections.abc import Collection
from typing import Any

import torch
from mmengine.config import Config
from mmengine.device import get_device
from mmengine.registry import DATASETS, DefaultScope

from mmseg_cct.config.walk import get_by_key, settings_of
from mmseg_cct.datasets import MultiDomainDataset, SemiSegDataset
from mmseg_cct.errors import UserError
from mmseg_cct.preflight.settings import is_a
from mmseg_cct.utils.log import say
from mmseg_cct.utils.processes import usable_cores

# Data sets whose images do not depend on the number of workers: their sampler draws all seeds.
_SEEDED = (SemiSegDataset, MultiDomainDataset)

_BFLOAT16 = 'BFloat16OptimWrapper'
HALF = ('AmpOptimWrapper', _BFLOAT16)  # what computes in mixed precision
# Seconds without a batch after which a training ends rather than wait for ever.
_PATIENCE = 600
# What makes a backbone, also one in a MultiChannelBackbone, compute its activations again.
_RECOMPUTING = (
    'model.backbone.with_cp',
    'model.backbone.backbone.with_cp',
    'activation_checkpointing',
)


def default_device() -> str:
    """Returns the GPU of this process's rank on this machine, or the CPU if there is none."""
    number = torch.cuda.device_count()
    return f'cuda:{int(os.environ.get("LOCAL_RANK", 0)) % number}' if number else 'cpu'


def number_the_only_gpu() -> None:
    """Makes the GPU of a process that sees no other its number 0, as with `srun --gpus-per-task`.

    mmengine takes the GPU of the process's rank on its machine, which such a process lacks.
    """
    if torch.cuda.device_count() == 1:
        for name in ('LOCAL_RANK', 'SLURM_LOCALID'):
            if name in os.environ:
                os.environ[name] = '0'


def use_half_precision(config: Config) -> None:
    """Makes a config train with mixed precision.

    Raises:
        UserError: Its optim wrapper is of a type of its own.
    """
    wrapper = config.optim_wrapper.setdefault('type', 'OptimWrapper')
    if wrapper == 'OptimWrapper':
        device = get_device()
        has_bfloat16 = device == 'cpu'  # slow, but there
        if device == 'cuda':  # NVIDIA's from Ampere on, AMD's all
            is_amd = torch.version.hip is not None
            has_bfloat16 = is_amd or torch.cuda.get_device_capability() >= (8, 0)
            has_bfloat16 &= config.optim_wrapper.get('dtype') in (None, 'bfloat16')
        if has_bfloat16:
            config.optim_wrapper.pop('dtype', None)
        # float16 needs a loss scaler, for which the host waits in every step
        scaled = dict(type='AmpOptimWrapper', loss_scale='dynamic')
        config.optim_wrapper.update(dict(type=_BFLOAT16) if has_bfloat16 else scaled)
    elif wrapper not in HALF:
        raise UserError('--amp', f'optim_wrapper.type is {wrapper}', 'OptimWrapper')


def compile_encoders(config: Config) -> None:
    """Makes a config for training compile the encoders.

    A GPU also gets their features in channels-last, unless the config says otherwise: with its
    launches gone, what is left is its own time, of which convolutions take less so.
    """
    config.default_hooks.compile_encoder = dict(type='CompileEncoderHook')
    layout = config.default_hooks.get('memory_format')
    if get_device() == 'cuda' and layout and layout.get('enabled') is None:
        layout.enabled = True


def fit_to_device(config: Config, launcher: str) -> None:
    """Fits a config that is written for GPUs to the device at hand and a launcher.

    Raises:
        UserError: A setting is not supported on this device, or on several processes.
    """
    config.launcher = launcher
    if runner := config.get('runner_type'):
        # FSDP gathers parameters in forward alone, and segmentors call methods of their heads.
        raise UserError(f'runner_type={runner}', 'not supported', 'none: Runner trains by DDP')
    wrapper = config.get('optim_wrapper') or {}
    key = next((key for key in _RECOMPUTING if get_by_key(config, key)), None)
    if launcher != 'none' and key:
        config.model_wrapper_cfg = _checkpointing_ddp(config, f'{key}={get_by_key(config, key)}')
    if get_device() != 'cpu':
        # batches reach a GPU sooner from pinned memory
        loader = config.get('train_dataloader')
        if loader and get_device() == 'cuda':
            loader.setdefault('pin_memory', True)
        return
    if wrapper.get('type') == 'AmpOptimWrapper':
        wrapper['type'] = _BFLOAT16
        for key in ('loss_scale', 'dtype', 'use_fsdp'):
            wrapper.pop(key, None)
    if launcher == 'none':
        return
    # as mmengine does for a single process: torch has no SyncBN for CPUs
    config.pop('sync_bn', None)
    for key, layer in settings_of(config.model, 'model'):
        if isinstance(layer, dict) and layer.get('type') == 'SyncBN':
            layer['type'] = 'BN'
            say(f'{key}: SyncBN needs GPUs, BN on CPUs')
    config.model_wrapper_cfg = {**_ddp(config), 'device_ids': None}  # DDP wants none on CPUs


def fit_workers(config: Config, chosen: Collection[str] = ()) -> None:
    """Starts no more loading workers than there are cores for them, and waits 10 minutes at most.

    On a CPU the network needs cores too, so only half of them load. Keys that the user has set,
    `chosen`, stay as they are; so do trainings whose images depend on the number of workers.
    """
    with DefaultScope.overwrite_default_scope(config.get('default_scope')):
        is_seeded = is_a(get_by_key(config, 'train_dataloader.dataset'), DATASETS, *_SEEDED)
    cores = usable_cores()
    most = max(cores // 2 if get_device() == 'cpu' else cores, 1)
    for split in ('train', 'val', 'test'):
        loader: Any = config.get(f'{split}_dataloader') or {}
        if not loader.get('num_workers') and loader.get('persistent_workers'):  # torch rejects it
            loader.persistent_workers = False
        if loader.get('num_workers'):
            loader.setdefault('timeout', _PATIENCE)
        key = f'{split}_dataloader.num_workers'
        if key in chosen or (split == 'train' and not is_seeded):
            continue
        if loader.get('num_workers', 0) > most:
            loader.num_workers = most


def _ddp(config: Config) -> dict[str, Any]:
    """Returns DDP's settings with mmengine's defaults, which a wrapper in the config would lose."""
    return {
        'type': 'MMDistributedDataParallel',
        'broadcast_buffers': False,
        'find_unused_parameters': config.get('find_unused_parameters', False),
        **(config.get('model_wrapper_cfg') or {}),
    }


def _checkpointing_ddp(config: Config, setting: str) -> dict[str, Any]:
    # MMSeg's checkpointed blocks run backward within backward, and the backbone runs twice a step.
    # DDP accepts that only with a static graph, as it is here, and then reduces in every step.
    if get_by_key(config, 'optim_wrapper.accumulative_counts', 1) > 1:
        problem = f'DDP cannot have more than 1 with {setting}; choose one of the two'
        raise UserError('optim_wrapper.accumulative_counts', problem)
    if config.model.get('domains'):
        problem = 'DDP supports it only if every step has the same graph, not with several domains'
        raise UserError(setting, problem)
    return {'static_graph': True, **_ddp(config)}
