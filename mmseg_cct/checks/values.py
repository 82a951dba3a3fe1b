"""Values that a setting may have, and settings that go together.

Types and names of arguments are `config_errors`' concern. Here stands what a constructor takes
without a word and a training then stumbles over: hours later, or never.
"""

import math
import os
from collections.abc import Callable, Mapping, Sequence
from fnmatch import fnmatchcase
from typing import Any, NamedTuple

from mmengine.registry import DATA_SAMPLERS, MODELS, DefaultScope, Registry

from mmseg_cct.config.walk import settings_of
from mmseg_cct.datasets.image_lists import check_annotations
from mmseg_cct.datasets.samplers.endless_sampler import EndlessSampler
from mmseg_cct.errors import UserError


class Rule(NamedTuple):
    """What a setting may be.

    Attributes:
        pattern: Of dotted keys; `*` stands for anything.
        allows: Tells whether a value is fine.
        expected: The same in words.
    """

    pattern: str
    allows: Callable[[Any], bool]
    expected: str


def _whole(minimum: int, maximum: float = math.inf) -> Callable[[Any], bool]:
    return lambda v: type(v) is int and minimum <= v <= maximum


def _number(minimum: float = -math.inf, maximum: float = math.inf) -> Callable[[Any], bool]:
    def allows(value: Any) -> bool:
        is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
        return is_number and math.isfinite(value) and minimum <= value <= maximum

    return allows


def _inside(low: float, high: float) -> Callable[[Any], bool]:
    return lambda v: _number()(v) and low < v < high


def _or(other: Any, allows: Callable[[Any], bool]) -> Callable[[Any], bool]:
    return lambda v: v == other or allows(v)


def _is_size(value: Any) -> bool:
    is_pair = isinstance(value, (list, tuple)) and len(value) == 2
    return is_pair and all(map(_whole(1), value))


def _is_scales(value: Any) -> bool:
    is_list = isinstance(value, (list, tuple)) and len(value) > 0
    return is_list and all(map(_inside(0, math.inf), value))


def _is_listing(value: Any) -> bool:
    return value is None or isinstance(value, (str, list, tuple))


_COUNT, _COUNT_OR_NONE = 'a whole number from 1', 'a whole number from 1, or None'
RULES = (
    Rule('train_cfg.max_iters', _whole(1), _COUNT),
    Rule('train_cfg.max_epochs', _whole(1), _COUNT),
    Rule('train_cfg.val_interval', _whole(1), _COUNT),
    Rule('train_cfg.val_begin', _whole(0), 'a whole number from 0'),
    Rule('*_dataloader.batch_size', _whole(1), _COUNT),
    Rule('*_dataloader.num_workers', _whole(0), 'a whole number from 0'),
    Rule('randomness.seed', _or(None, _whole(0, 2**32 - 1)), 'a whole number from 0 to 2³² - 1'),
    Rule('optim_wrapper.accumulative_counts', _whole(1), _COUNT),
    Rule('optim_wrapper.optimizer.lr', _number(), 'a finite number'),
    Rule('optim_wrapper.optimizer.momentum', _number(0), 'a finite number from 0'),
    Rule('optim_wrapper.optimizer.weight_decay', _number(), 'a finite number'),
    Rule('optim_wrapper.clip_grad.max_norm', _number(0), 'a finite number from 0'),
    Rule('model.test_cfg.mode', lambda v: v in ('whole', 'slide'), "'whole' or 'slide'"),
    Rule('model.*num_classes', _or(None, _whole(1)), _COUNT),
    Rule('model.*loss_pairwise.num_decoders', _whole(2), 'a whole number from 2'),
    Rule('model.*num_decoders', _whole(0), 'a whole number from 0'),
    Rule('model.*confidence_threshold', _or(None, _number(0, 1)), 'a number in [0, 1], or None'),
    Rule('model.*memory_budget', _or(None, _whole(1)), _COUNT_OR_NONE),
    Rule('model.*loss_weight', _number(), 'a finite number'),
    Rule('default_hooks.*.interval', _or(-1, _whole(1)), f'{_COUNT}, or -1 for never'),
    Rule('custom_hooks.*.interval', _or(-1, _whole(1)), f'{_COUNT}, or -1 for never'),
    Rule('custom_hooks.*.start', _or(None, _number()), 'a finite number'),
    Rule('custom_hooks.*.fraction', _number(), 'a finite number'),
    Rule('custom_hooks.*.attribute', lambda v: isinstance(v, str), 'a dotted name'),
    Rule('custom_hooks.*.end', _or(None, _number()), 'a finite number'),
    Rule('model*data_preprocessor.size', _or(None, _is_size), 'height and width, or None'),
    Rule('model*size_divisor', _or(None, _whole(1)), _COUNT_OR_NONE),
    Rule('*_dataloader.dataset*.classes', _is_listing, 'the class names'),
    Rule('pseudo_labels.input_size', _or(None, _is_size), 'width and height, or None'),
    Rule('pseudo_labels.scales', _is_scales, 'a list of positive numbers'),
    Rule('pseudo_labels.thresholds.*', _number(0, 1), 'a number in [0, 1]'),
    # pydensecrf crashes on widths much smaller
    Rule('pseudo_labels.crf.*_s*', _number(0.01), 'a finite number from 0.01'),
    Rule('pseudo_labels.crf.*_compat', _number(0), 'a finite number from 0'),
    Rule('pseudo_labels.crf.iterations', _whole(1), _COUNT),
    Rule('pseudo_labels.crf.gt_prob', _inside(0, 1), 'a number between 0 and 1, and neither'),
    Rule('log_level', lambda v: isinstance(v, (str, int)), 'a name such as INFO'),
    Rule('log_processor.window_size', _or('global', _whole(1)), _COUNT),
)
# Of torch's clip_grad_norm_ and clip_grad_value_; `type` picks one.
_CLIP_GRAD = ('type', 'max_norm', 'norm_type', 'error_if_nonfinite', 'foreach', 'clip_value')
_EVALUATION = ('{}_dataloader', '{}_cfg', '{}_evaluator')


def check_values(config: Any) -> None:
    """Checks the values of settings, each on its own.

    Args:
        config: The whole config.

    Raises:
        UserError: One cannot be.
    """
    for key, value in settings_of(config):
        for rule in RULES:
            if fnmatchcase(key, rule.pattern) and not rule.allows(value):
                raise UserError(f'{key}={value!r}: expected {rule.expected}')
    test = (config.get('model') or {}).get('test_cfg') or {}
    for name in ('crop_size', 'stride'):
        if test.get('mode') == 'slide' and test.get(name) is None:
            raise UserError(f'model.test_cfg.{name}: missing; expected one for mode="slide"')
    _check_class_weights(config.get('model'), 'model')


def check_training(config: Any) -> None:
    """Checks what a training needs as a whole.

    Args:
        config: The whole config.

    Raises:
        UserError: A part is missing, or two do not go together.
    """
    wrapper, dataset = config.optim_wrapper, config.train_dataloader.get('dataset') or {}
    if wrapper.get('optimizer') is None and wrapper.get('constructor') is None:
        raise UserError(
            'optim_wrapper.optimizer: missing; expected one, as in dict(type="SGD", ...)'
        )
    for name in wrapper.get('clip_grad') or ():
        if name not in _CLIP_GRAD:
            raise UserError(
                f'optim_wrapper.clip_grad.{name}: unknown; expected {", ".join(_CLIP_GRAD[1:])}'
            )
    if dataset.get('type') == 'SemiSegDataset':
        if dataset.get('labeled') is None:
            raise UserError('train_dataloader.dataset.labeled: missing; expected a labelled set')
        if dataset.get('unlabeled') is not None:
            _require_pairs(config)
        preprocessor = (config.model.get('data_preprocessor') or {}).get('type')
        if dataset.get('unlabeled') is not None and preprocessor == 'SegDataPreProcessor':
            raise UserError(
                'train_dataloader.dataset.unlabeled: model.data_preprocessor.type is '
                'SegDataPreProcessor, which takes no pairs; expected BranchPreprocessor, or no '
                'unlabelled set'
            )
    for split in ('train', 'val', 'test'):
        dataset = (config.get(f'{split}_dataloader') or {}).get('dataset') or {}
        if dataset.get('type') == 'MultiLabelDataset' and dataset.get('ann_file'):
            check_annotations(os.path.join(dataset.get('data_root') or '', dataset['ann_file']))
    for split in ('val', 'test'):
        names = [name.format(split) for name in _EVALUATION]
        missing = [name for name in names if config.get(name) is None]
        if missing and len(missing) < len(names):
            there = next(name for name in names if name not in missing)
            raise UserError(f'{missing[0]}: missing; expected one, for there is a {there}')
    _check_epochs(config)


def _require_pairs(config: Any) -> None:
    """Checks that the model's loss takes pairs: that of MMSeg's own models does not."""
    kind = _class_of(MODELS, config.model.get('type'), config)
    if getattr(getattr(kind, 'loss', None), '__module__', '').startswith('mmseg.'):
        raise UserError(
            f'model.type={config.model.type!r}: takes no pairs; expected a model that does, such '
            'as CCTSegmentor, or train_dataloader.dataset.unlabeled=None'
        )


def _class_of(registry: Registry, kind: Any, config: Any) -> Any:
    if not isinstance(kind, str):
        return kind
    scope = DefaultScope.overwrite_default_scope(config.get('default_scope'))
    with scope, registry.switch_scope_and_registry(None) as scoped:
        return scoped.get(kind)


def _check_epochs(config: Any) -> None:
    loop = config.train_cfg
    by_epoch = loop.get('type') == 'EpochBasedTrainLoop' or loop.get('by_epoch', False)
    if by_epoch:
        sampler = (config.train_dataloader.get('sampler') or {}).get('type')
        kind = _class_of(DATA_SAMPLERS, sampler, config)
        endless = isinstance(kind, type) and issubclass(kind, EndlessSampler)
        if endless or sampler == 'InfiniteSampler':
            raise UserError(
                f'train_cfg: counts epochs, and train_dataloader.sampler {sampler} has no end; '
                'expected type="IterBasedTrainLoop" with max_iters'
            )
        return
    schedulers = config.get('param_scheduler') or []
    for index, part in enumerate(schedulers if isinstance(schedulers, list) else [schedulers]):
        if part.get('by_epoch', True):
            raise UserError(
                f'param_scheduler.{index}.by_epoch: True, and train_cfg counts iterations, so it '
                'would never step; expected by_epoch=False'
            )
    hook = (config.get('default_hooks') or {}).get('checkpoint') or {}
    if hook.get('by_epoch', True) and hook.get('interval', -1) != -1:
        raise UserError(
            'default_hooks.checkpoint.by_epoch: True, and train_cfg counts iterations, so nothing '
            'would be saved; expected by_epoch=False'
        )


def _check_class_weights(part: Any, key: str, num_classes: int | None = None) -> None:
    if isinstance(part, Mapping):
        own = part.get('num_classes')
        num_classes = own if isinstance(own, int) else num_classes
        given = part.get('class_weight')
        if isinstance(given, (list, tuple)) and num_classes and len(given) != num_classes:
            raise UserError(
                f'{key}.class_weight: {len(given)} weights; expected {num_classes}, one per class'
            )
        for name, value in part.items():
            _check_class_weights(value, f'{key}.{name}', num_classes)
    elif isinstance(part, Sequence) and not isinstance(part, str):
        for index, value in enumerate(part):
            _check_class_weights(value, f'{key}.{index}', num_classes)
