"""Checks the settings of a training: what would train otherwise than meant, and what it needs."""

import inspect
import os
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

from mmengine.dataset import InfiniteSampler
from mmengine.hooks import EMAHook
from mmengine.optim.scheduler.param_scheduler import ReduceOnPlateauParamScheduler
from mmengine.registry import (
    DATA_SAMPLERS,
    HOOKS,
    LOOPS,
    PARAM_SCHEDULERS,
    DefaultScope,
    Registry,
)
from mmengine.runner import EpochBasedTrainLoop

from mmseg_cct.config.load import schedulers
from mmseg_cct.config.walk import get_by_key, settings_of
from mmseg_cct.datasets.samplers import EndlessSampler
from mmseg_cct.engine.hooks import DurableCheckpointHook, TeacherHook
from mmseg_cct.engine.safe_loading import address_of, download
from mmseg_cct.engine.weights import require_pretrained_weights
from mmseg_cct.errors import Problem, UserError, raise_problems
from mmseg_cct.utils.text import library_errors_as_one_line


def is_a(settings: Any, registry: Registry, *classes: type) -> bool:
    """Whether the type of a component names one of some classes, or a subclass."""
    component = settings.get('type') if isinstance(settings, Mapping) else None
    if isinstance(component, str) and component.strip('.'):
        with registry.switch_scope_and_registry(settings.get('_scope_')) as scoped:
            try:
                component = scoped.get(component)
            except Exception:  # a registry tries to import what looks like a path, even '../x'
                return False
    return inspect.isclass(component) and issubclass(component, classes)


def hooks_of(config: Any) -> Iterator[tuple[str, Any]]:
    """Yields key and settings of all hooks."""
    default = (config.get('default_hooks') or {}).items()
    custom = enumerate(config.get('custom_hooks') or ())
    for section, hooks in (('default_hooks', default), ('custom_hooks', custom)):
        for name, hook in hooks:
            if isinstance(hook, Mapping):
                yield f'{section}.{name}', hook


def training_problems(config: Any) -> Iterator[Problem]:
    """Checks what would train otherwise than meant without a word."""
    # Each exchanges its weights with the network's before a validation and again after it. Two in
    # the same order both times leave the network with weights of the other's.
    first = ''
    for key, hook in hooks_of(config):
        trains_only = is_a(hook, HOOKS, TeacherHook) and hook.get('evaluate') != 'teacher'
        if is_a(hook, HOOKS, EMAHook) and not trains_only:
            if first:
                yield Problem(key, f'a second hook that validates averages after {first}', 'one')
            first = key
    loop = config['train_cfg']
    if is_a(loop, LOOPS, EpochBasedTrainLoop) or loop.get('by_epoch', False):
        key = 'train_dataloader.sampler'
        sampler = get_by_key(config, key)
        if is_a(sampler, DATA_SAMPLERS, EndlessSampler, InfiniteSampler):
            mistake = f'counts epochs, and {key} {sampler["type"]} has no end'
            yield Problem('train_cfg', mistake, 'type="IterBasedTrainLoop" with max_iters')
        return
    counts = 'True, and train_cfg counts iterations, so'
    for index, part in enumerate(schedulers(config)):
        # this one steps with the validations, which mmengine calls epochs in any loop
        waits = is_a(part, PARAM_SCHEDULERS, ReduceOnPlateauParamScheduler)
        if part.get('by_epoch', True) and not waits:
            key = f'param_scheduler.{index}.by_epoch'
            yield Problem(key, f'{counts} it would never step', 'by_epoch=False')
    hook = get_by_key(config, 'default_hooks.checkpoint') or {}
    # mmengine's default is never; that of a DurableCheckpointHook, whenever it validates
    interval = None if is_a(hook, HOOKS, DurableCheckpointHook) else -1
    if hook.get('by_epoch', True) and hook.get('interval', interval) != -1:
        key = 'default_hooks.checkpoint.by_epoch'
        yield Problem(key, f'{counts} nothing would be saved', 'by_epoch=False')


def config_errors_as_one_line(
    config: Any, fails: str = 'cannot be built'
) -> AbstractContextManager[None]:
    """Names the config and what a library says, which names the component, in one line."""
    config_name = getattr(config, 'filename', None) or 'the config'
    return library_errors_as_one_line(config_name, fails, 'settings that fit together')


def fetch_pretrained_weights(model: Mapping[str, Any]) -> None:
    """Fetches every checkpoint that a model's `init_cfg` names into torch's cache.

    mmengine would download them late (after the data set is checked and the model built), without
    a timeout, and with an error that does not help on a machine without network. Local files are
    checked to exist.
    """
    named = [(key, file, address_of(file, f'{key}: ')) for key, file in _named_checkpoints(model)]
    local = [(key, file) for key, file, url in named if url is None and '://' not in file]
    missing = [(key, file) for key, file in local if not Path(file).expanduser().is_file()]
    raise_problems(Problem(key, f'{file} is not a file', 'a checkpoint') for key, file in missing)
    # One download per machine; the other processes wait for it where mmengine loads the file.
    if os.environ.get('LOCAL_RANK', '0') != '0':
        return
    for key, checkpoint, url in named:
        if url is not None:
            download(url, f'{key}: {checkpoint}', f', or set {key}=FILE')


def check_pretrained_weights(model: Mapping[str, Any], scope: str | None = 'mmseg') -> None:
    """Checks that the files that a model's `init_cfg` names fit the modules they are for."""
    problems: list[Problem | UserError] = []
    for key, part in settings_of(model, 'model'):
        if not isinstance(part, Mapping) or 'type' not in part:
            continue
        try:
            with DefaultScope.overwrite_default_scope(scope):
                require_pretrained_weights(part, key)
        except UserError as error:
            problems.append(error)
    raise_problems(problems)


def _named_checkpoints(model: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yields the dotted key and the value of each `Pretrained` checkpoint."""
    for key, part in settings_of(model, 'model'):
        if not isinstance(part, Mapping):
            continue
        if part.get('type') == 'Pretrained' and isinstance(part.get('checkpoint'), str):
            yield f'{key}.checkpoint', part['checkpoint']
        # The older spelling, which MMSeg's segmentors and backbones still accept.
        if isinstance(part.get('pretrained'), str):
            yield f'{key}.pretrained', part['pretrained']
