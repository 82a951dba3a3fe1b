"""Checks whether the settings of a training go together."""

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
from mmseg_cct.engine.hooks import DurableCheckpointHook, RampUpHook, TeacherHook
from mmseg_cct.errors import Problem

from .components import class_of, is_a


def training_problems(config: Any) -> Iterator[Problem]:
    """Checks what would train otherwise than meant, or say so only late."""
    yield from _pair_problems(config)
    yield from _hook_problems(config)
    yield from _epoch_problems(config)


def _pair_problems(config: Any) -> Iterator[Problem]:
    """Checks that model and preprocessor take pairs, and that there are some."""
    key = 'train_dataloader.dataset'
    dataset = get_by_key(config, key) or {}
    if not is_a(dataset, DATASETS, SemiSegDataset):
        return
    if dataset.get('unlabeled') is None:
        return
    ratio = dataset.get('labeled_per_unlabeled', 1)
    batch_size = get_by_key(config, 'train_dataloader.batch_size')
    if isinstance(ratio, int) and isinstance(batch_size, int) and ratio > batch_size:
        found = f'no unlabelled image in a batch of {batch_size}'
        expected = f'at most {batch_size}, or a larger train_dataloader.batch_size'
        yield Problem(f'{key}.labeled_per_unlabeled={ratio}', found, expected)
    model = config['model']
    kind = class_of(model, MODELS)
    if getattr(getattr(kind, 'loss', None), '__module__', '').startswith('mmseg.'):
        found = 'takes no pairs'
        expected = f'a model that does, such as CCTSegmentor, or {key}.unlabeled=None'
        yield Problem(f'model.type={model.get("type")!r}', found, expected)
        return
    kind = class_of(get_by_key(model, 'data_preprocessor'), MODELS)
    if getattr(kind, 'forward', None) is SegDataPreProcessor.forward:
        found = f'model.data_preprocessor.type is {kind.__name__}, which takes no pairs'
        expected = 'BranchPreprocessor, or no unlabelled set'
        yield Problem(f'{key}.unlabeled', found, expected)


def _hook_problems(config: Any) -> Iterator[Problem]:
    """Checks that no two hooks do the same: of two, at best the last would count."""
    there: dict[str, str] = {}
    for key, settings in hooks_of(config):
        for role in _roles(settings):
            if (first := there.setdefault(role, key)) != key:
                yield Problem(key, f'a second {role} after {first}', 'one')


def hooks_of(config: Any) -> Iterator[tuple[str, Any]]:
    """Yields key and settings of all hooks."""
    default = (config.get('default_hooks') or {}).items()
    custom = enumerate(config.get('custom_hooks') or ())
    for section, hooks in (('default_hooks', default), ('custom_hooks', custom)):
        for name, hook in hooks:
            if isinstance(hook, Mapping):
                yield f'{section}.{name}', hook


def _roles(hook: Any) -> Iterator[str]:
    """Yields what only one hook can do."""
    is_teacher = is_a(hook, HOOKS, TeacherHook)
    if is_a(hook, HOOKS, RampUpHook):
        yield f'RampUpHook of {hook.get("attribute")}'
    if is_teacher:
        yield 'TeacherHook'
    # Each exchanges its weights with the network's before a validation and again after it. Two in
    # the same order both times leave the network with weights of the other's.
    averages = is_a(hook, HOOKS, EMAHook)
    if averages and (not is_teacher or hook.get('evaluate') == 'teacher'):
        yield 'hook that validates averaged weights'


def _epoch_problems(config: Any) -> Iterator[Problem]:
    for index, part in enumerate(schedulers(config)):
        # mmengine gives these the metrics only if they count epochs, whatever the loop counts
        waits = is_a(part, PARAM_SCHEDULERS, ReduceOnPlateauParamScheduler)
        if waits and not part.get('by_epoch', True):
            key = f'param_scheduler.{index}.by_epoch'
            yield Problem(key, 'False, so it would never get a metric', 'by_epoch=True')
    loop = config['train_cfg']
    if is_a(loop, LOOPS, EpochBasedTrainLoop) or loop.get('by_epoch', False):
        key = 'train_dataloader.sampler'
        sampler = get_by_key(config, key)
        if is_a(sampler, DATA_SAMPLERS, EndlessSampler, InfiniteSampler):
            found = f'counts epochs, and {key} {sampler["type"]} has no end'
            expected = 'type="IterBasedTrainLoop" with max_iters'
            yield Problem('train_cfg', found, expected)
        return
    counts = 'True, and train_cfg counts iterations, so'
    for index, part in enumerate(schedulers(config)):
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
