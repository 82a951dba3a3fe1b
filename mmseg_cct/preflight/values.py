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
from mmseg_cct.config.walk import at
from mmseg_cct.datasets import SemiSegDataset
from mmseg_cct.datasets.samplers import EndlessSampler
from mmseg_cct.engine.hooks import DurableCheckpointHook, RampUpHook, TeacherHook
from mmseg_cct.errors import Problem

from .components import class_of, is_a

# Arguments of torch's clip_grad_norm_ and clip_grad_value_; `type` picks one.
_CLIP_GRAD = ('type', 'max_norm', 'norm_type', 'error_if_nonfinite', 'foreach', 'clip_value')


def training_problems(config: Any) -> Iterator[Problem]:
    """Checks what training needs as a whole."""
    if not (at(config, 'optim_wrapper.optimizer') or at(config, 'optim_wrapper.constructor')):
        yield Problem('optim_wrapper.optimizer', 'missing', 'one, as in dict(type="SGD", ...)')
    for name in at(config, 'optim_wrapper.clip_grad') or ():
        if name not in _CLIP_GRAD:
            key = f'optim_wrapper.clip_grad.{name}'
            yield Problem(key, 'unknown', ', '.join(_CLIP_GRAD[1:]))
    yield from _pair_problems(config)
    yield from _hook_problems(config)
    for split in ('val', 'test'):
        names = [f'{split}_{part}' for part in ('dataloader', 'cfg', 'evaluator')]
        missing = [name for name in names if config.get(name) is None]
        if missing and len(missing) < len(names):
            there = next(name for name in names if name not in missing)
            yield Problem(missing[0], 'missing', f'one, because there is a {there}')
    yield from _epoch_problems(config)


def _pair_problems(config: Any) -> Iterator[Problem]:
    """Checks that pairs have a labelled set, and a model and a preprocessor that take them."""
    key = 'train_dataloader.dataset'
    dataset = at(config, key) or {}
    if not is_a(dataset, DATASETS, SemiSegDataset):
        return
    if dataset.get('labeled') is None:
        yield Problem(f'{key}.labeled', 'missing', 'a labelled set')
    if dataset.get('unlabeled') is None:
        return
    ratio = dataset.get('labeled_per_unlabeled', 1)
    batch_size = at(config, 'train_dataloader.batch_size')
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
    kind = class_of(at(model, 'data_preprocessor'), MODELS)
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
        sampler = at(config, key)
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
    hook = at(config, 'default_hooks.checkpoint') or {}
    # mmengine's default is never; that of a DurableCheckpointHook, whenever it validates
    interval = None if is_a(hook, HOOKS, DurableCheckpointHook) else -1
    if hook.get('by_epoch', True) and hook.get('interval', interval) != -1:
        key = 'default_hooks.checkpoint.by_epoch'
        yield Problem(key, f'{counts} nothing would be saved', 'by_epoch=False')
