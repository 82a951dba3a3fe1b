"""Checks whether the settings of a training go together; each value by itself has a `Range`."""

from collections.abc import Iterator, Mapping
from typing import Any

from mmengine.dataset import InfiniteSampler
from mmengine.hooks import EMAHook
from mmengine.optim.scheduler.param_scheduler import ReduceOnPlateauParamScheduler
from mmengine.registry import DATA_SAMPLERS, DATASETS, HOOKS, LOOPS, MODELS, PARAM_SCHEDULERS
from mmengine.runner import EpochBasedTrainLoop
from mmseg.models import SegDataPreProcessor

from mmseg_cct.config.load import schedulers
from mmseg_cct.config.walk import get_by_key
from mmseg_cct.datasets import SemiSegDataset
from mmseg_cct.datasets.samplers import EndlessSampler
from mmseg_cct.engine.hooks import DurableCheckpointHook, TeacherHook
from mmseg_cct.errors import Problem
from mmseg_cct.utils.log import warn

from .components import class_of, is_a


def training_problems(config: Any) -> Iterator[Problem]:
    """Checks what would train otherwise than meant, or say so only late."""
    yield from _pair_problems(config)
    # Each exchanges its weights with the network's before a validation and again after it. Two in
    # the same order both times leave the network with weights of the other's.
    first = ''
    for key, hook in hooks_of(config):
        trains_only = is_a(hook, HOOKS, TeacherHook) and hook.get('evaluate') != 'teacher'
        if is_a(hook, HOOKS, EMAHook) and not trains_only:
            if first:
                yield Problem(key, f'a second hook that validates averages after {first}', 'one')
            first = key
    yield from _epoch_problems(config)


def _pair_problems(config: Any) -> Iterator[Problem]:
    """Checks that model and preprocessor take pairs, and that there are some."""
    key = 'train_dataloader.dataset'
    dataset = get_by_key(config, key) or {}
    if not is_a(dataset, DATASETS, SemiSegDataset) or dataset.get('unlabeled') is None:
        return
    ratio = dataset.get('labeled_per_unlabeled', 1)
    batch_size = get_by_key(config, 'train_dataloader.batch_size')
    if isinstance(ratio, int) and isinstance(batch_size, int) and ratio > batch_size:
        mistake = f'no unlabelled image in a batch of {batch_size}'
        yield Problem(f'{key}.labeled_per_unlabeled={ratio}', mistake, f'at most {batch_size}')
    # either would fail at the first step, with words about a dict that do not name the setting
    segmentor = class_of(config['model'], MODELS)
    if getattr(getattr(segmentor, 'loss', None), '__module__', '').startswith('mmseg.'):
        expected = f'a model that does, such as CCTSegmentor, or {key}.unlabeled=None'
        yield Problem(f'model.type={config["model"].get("type")!r}', 'takes no pairs', expected)
        return
    preprocessor = class_of(get_by_key(config, 'model.data_preprocessor'), MODELS)
    if getattr(preprocessor, 'forward', None) is SegDataPreProcessor.forward:
        key = f'model.data_preprocessor.type={preprocessor.__name__!r}'
        yield Problem(key, 'takes no pairs', 'BranchPreprocessor, or no unlabelled set')


def warn_of_unmixed_images(model: Any, dataloader: Any) -> None:
    """Warns where CutMix mixes nothing, as a process has one unlabelled image in a batch."""
    ratio = getattr(dataloader.dataset, 'labeled_per_unlabeled', 1)
    if getattr(model, 'cutmix', None) and dataloader.batch_size < 2 * ratio:
        mistake = 'CutMix mixes the unlabelled images of a process, and there is one'
        expected = f'{2 * ratio} or more on each, or model.cutmix=None'
        key = f'train_dataloader.batch_size={dataloader.batch_size}'
        warn(str(Problem(key, mistake, expected)))


def hooks_of(config: Any) -> Iterator[tuple[str, Any]]:
    """Yields key and settings of all hooks."""
    default = (config.get('default_hooks') or {}).items()
    custom = enumerate(config.get('custom_hooks') or ())
    for section, hooks in (('default_hooks', default), ('custom_hooks', custom)):
        for name, hook in hooks:
            if isinstance(hook, Mapping):
                yield f'{section}.{name}', hook


def _epoch_problems(config: Any) -> Iterator[Problem]:
    """Checks that what counts epochs is in a training that counts them, and has an end there."""
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
