"""Checks the values of settings, and whether settings go together.

The table holds limits that constructors of other libraries do not check, so that a bad value fails
hours later in training, or never. This package's components state their ranges themselves
(`ranges`).
"""

from collections.abc import Iterator
from fnmatch import fnmatchcase
from typing import Any

from mmengine.dataset import InfiniteSampler
from mmengine.hooks import EMAHook
from mmengine.registry import DATA_SAMPLERS, DATASETS, HOOKS, LOOPS, MODELS
from mmengine.runner import EpochBasedTrainLoop
from mmseg.models import SegDataPreProcessor

from mmseg_cct.config.schedulers import schedulers
from mmseg_cct.config.walk import at, settings_of
from mmseg_cct.datasets import SemiSegDataset
from mmseg_cct.datasets.samplers import EndlessSampler
from mmseg_cct.engine.hooks import DurableCheckpointHook, RampUpHook, TeacherHook
from mmseg_cct.errors import Problem, raise_problems
from mmseg_cct.utils.ranges import (
    Range,
    at_least,
    finite,
    in_unit,
    number,
    open_unit,
    optional,
    positive,
    ranges_of,
)
from mmseg_cct.utils.text import is_unicode

from .components import Component, class_of, find_components, is_a


def _pair(expected: str) -> Range:
    def allows(value: Any) -> bool:
        is_pair = isinstance(value, (list, tuple)) and len(value) == 2
        return is_pair and all(map(at_least(1).allows, value))

    return optional(Range(allows, expected))


def _or(other: Any, limit: Range, expected: str) -> Range:
    return Range(lambda v: v == other or limit.allows(v), expected)


def _are_names(value: Any) -> bool:
    # a string is a file of names; OpenCV aborts the process on a name that is not Unicode
    is_list = isinstance(value, (list, tuple)) and all(isinstance(name, str) for name in value)
    return isinstance(value, str) or (is_list and all(map(is_unicode, value)))


_INTERVAL = _or(-1, at_least(1), 'a whole number from 1, or -1 for never')
_SEED = Range(lambda v: at_least(0).allows(v) and v < 2**32, 'a whole number from 0 to 2³² - 1')
# By pattern of the dotted key; the first match counts, and `*` stands for anything.
RULES = {
    'train_cfg.max_iters': at_least(1),
    'train_cfg.max_epochs': at_least(1),
    'train_cfg.val_interval': at_least(1),
    'train_cfg.val_begin': at_least(0),
    '*_dataloader.batch_size': at_least(1),
    '*_dataloader.num_workers': at_least(0),
    'train_dataloader.dataset*.labeled_per_unlabeled': at_least(1),
    'randomness.seed': optional(_SEED),
    'optim_wrapper.accumulative_counts': at_least(1),
    'optim_wrapper.optimizer.lr': finite,
    'optim_wrapper.optimizer.momentum': in_unit,
    'optim_wrapper.optimizer.weight_decay': finite,
    'optim_wrapper.clip_grad.max_norm': number(0),
    'model.test_cfg.mode': Range(lambda v: v in ('whole', 'slide'), "'whole' or 'slide'"),
    'model.*num_classes': optional(at_least(1)),
    'model.*loss_weight': number(0),
    'model.*norm_cfg.momentum': optional(in_unit),
    'default_hooks.logger.interval': at_least(1),
    'default_hooks.*.interval': _INTERVAL,
    'custom_hooks.*.interval': _INTERVAL,
    '*_hooks.*.momentum': in_unit,
    'model*data_preprocessor.size': _pair('height and width'),
    'model*size_divisor': optional(at_least(1)),
    '*_dataloader.dataset*.classes': optional(Range(_are_names, 'the class names')),
    'pseudo_labels.input_size': _pair('width and height'),
    'pseudo_labels.scales': Range(
        lambda v: isinstance(v, (list, tuple)) and bool(v) and all(map(positive.allows, v)),
        'a list of positive numbers',
    ),
    'pseudo_labels.thresholds.*': in_unit,
    'pseudo_labels.crf.*_s*': number(0.01),  # pydensecrf crashes on widths much smaller
    'pseudo_labels.crf.*_compat': number(0),
    'pseudo_labels.crf.iterations': at_least(1),
    'pseudo_labels.crf.gt_prob': open_unit,
    'log_level': Range(lambda v: isinstance(v, (str, int)), 'a name such as INFO'),
    'log_processor.window_size': _or('global', at_least(1), "a whole number from 1, or 'global'"),
}
# Arguments of torch's clip_grad_norm_ and clip_grad_value_; `type` picks one.
_CLIP_GRAD = ('type', 'max_norm', 'norm_type', 'error_if_nonfinite', 'foreach', 'clip_value')


def check_values(config: Any) -> None:
    """Checks the values of settings, for a tool that builds only parts of a config."""
    raise_problems(value_problems(config))


def value_problems(config: Any, section: str | None = None) -> Iterator[Problem]:
    """Checks the values of settings, each on its own."""
    for key, value in settings_of(config):
        limit = next((RULES[pattern] for pattern in RULES if fnmatchcase(key, pattern)), None)
        if limit and (problem := limit.problem(key, value)):
            yield problem
    for component in find_components(config, section):
        for name, limit in ranges_of(class_of(component)).items():
            if name in component.settings:
                key = f'{component.key}.{name}'
                if problem := limit.problem(key, component.settings[name]):
                    yield problem
    test = at(config, 'model.test_cfg') or {}
    for name in ('crop_size', 'stride'):
        if test.get('mode') == 'slide' and test.get(name) is None:
            yield Problem(f'model.test_cfg.{name}', 'missing', 'one for mode="slide"')
    yield from _class_weight_problems(config)


def _class_weight_problems(config: Any) -> Iterator[Problem]:
    for key, given in settings_of(config.get('model'), 'model'):
        place, _, name = key.rpartition('.')
        if name != 'class_weight' or not isinstance(given, (list, tuple)):
            continue
        num_classes = None
        while place and num_classes is None:  # of the nearest enclosing part that has them
            num_classes = at(config, f'{place}.num_classes')
            place = place.rpartition('.')[0]
        if isinstance(num_classes, int) and len(given) != num_classes:
            yield Problem(key, f'{len(given)} weights', f'{num_classes}, one per class')


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
        yield Problem(
            f'{key}.labeled_per_unlabeled={ratio}',
            f'no unlabelled image in a batch of {batch_size}',
            f'at most {batch_size}, or a larger train_dataloader.batch_size',
        )
    model = config['model']
    kind = class_of(Component('model', model, MODELS))
    if getattr(getattr(kind, 'loss', None), '__module__', '').startswith('mmseg.'):
        yield Problem(
            f'model.type={model.get("type")!r}',
            'takes no pairs',
            f'a model that does, such as CCTSegmentor, or {key}.unlabeled=None',
        )
        return
    kind = class_of(Component('', at(model, 'data_preprocessor'), MODELS))
    if getattr(kind, 'forward', None) is SegDataPreProcessor.forward:
        yield Problem(
            f'{key}.unlabeled',
            f'model.data_preprocessor.type is {kind.__name__}, which takes no pairs',
            'BranchPreprocessor, or no unlabelled set',
        )


def _hook_problems(config: Any) -> Iterator[Problem]:
    """Checks that no two hooks do the same, and that ramps of loss weights have no negative end."""
    there: dict[str, str] = {}
    hooks = (part for part in find_components(config) if part.registry is HOOKS)
    for key, settings, _ in hooks:
        for role in _roles(settings):
            if (first := there.setdefault(role, key)) != key:
                yield Problem(key, f'a second {role} after {first}', 'one')
        if not str(settings.get('attribute')).endswith('loss_weight'):
            continue
        for name in ('start', 'end'):
            value = settings.get(name)
            if finite.allows(value) and value < 0:
                yield Problem(f'{key}.{name}={value}', '', 'a loss weight from 0')


def _roles(hook: Any) -> Iterator[str]:
    """Yields what only one hook can do; of two, at best the last would count."""
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
    loop = config['train_cfg']
    if is_a(loop, LOOPS, EpochBasedTrainLoop) or loop.get('by_epoch', False):
        key = 'train_dataloader.sampler'
        sampler = at(config, key)
        if is_a(sampler, DATA_SAMPLERS, EndlessSampler, InfiniteSampler):
            yield Problem(
                'train_cfg',
                f'counts epochs, and {key} {sampler["type"]} has no end',
                'type="IterBasedTrainLoop" with max_iters',
            )
        return
    counts = 'True, and train_cfg counts iterations, so'
    for index, part in enumerate(schedulers(config)):
        if part.get('by_epoch', True):
            key = f'param_scheduler.{index}.by_epoch'
            yield Problem(key, f'{counts} it would never step', 'by_epoch=False')
    hook = at(config, 'default_hooks.checkpoint') or {}
    # mmengine's default is never; that of a DurableCheckpointHook, whenever it validates
    interval = None if is_a(hook, HOOKS, DurableCheckpointHook) else -1
    if hook.get('by_epoch', True) and hook.get('interval', interval) != -1:
        key = 'default_hooks.checkpoint.by_epoch'
        yield Problem(key, f'{counts} nothing would be saved', 'by_epoch=False')
