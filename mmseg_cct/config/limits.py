"""What values the settings of a config may have, in one table by pattern of the dotted key.

It holds what no constructor checks, so that a bad value fails hours later in training, or never.
This package's components state their ranges themselves (`mmseg_cct.utils.ranges`).
"""

from collections.abc import Iterator
from fnmatch import fnmatchcase
from typing import Any

import numpy as np

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
)
from mmseg_cct.utils.text import is_unicode

from .walk import get_by_key, settings_of


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


def is_palette(value: Any) -> bool:
    """Whether a value is a list of colours, three numbers from 0 to 255 each."""
    if not isinstance(value, (list, tuple, np.ndarray)):
        return False
    try:
        colours = np.array(value)
    except (ValueError, TypeError):  # colours of different lengths
        return False
    is_table = colours.ndim == 2 and colours.shape[1] == 3 and colours.dtype.kind in 'iu'
    return colours.shape == (0,) or (is_table and colours.min() >= 0 and colours.max() <= 255)


_INTERVAL = _or(-1, at_least(1), 'a whole number from 1, or -1 for never')
_SEED = Range(lambda v: at_least(0).allows(v) and v < 2**32, 'a whole number from 0 to 2³² - 1')
# By pattern of the dotted key; the first match counts, and `*` stands for anything.
LIMITS = {
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
    'model.test_cfg.crop_size': _pair('height and width'),
    'model.test_cfg.stride': _pair('height and width'),
    'model.*num_classes': optional(at_least(1)),
    'model.*loss_weight': number(0),
    'model.*norm_cfg.momentum': optional(in_unit),
    'default_hooks.logger.interval': at_least(1),
    'default_hooks.*.interval': _INTERVAL,
    'custom_hooks.*.interval': _INTERVAL,
    '*_hooks.*.momentum': in_unit,
    'model*data_preprocessor.size': _pair('height and width'),
    'model*size_divisor': optional(at_least(1)),
    '*_dataloader.dataset*.palette': optional(
        Range(is_palette, 'a list of colours, three numbers from 0 to 255 each')
    ),
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


def check_values(config: Any) -> None:
    """Checks the values of settings."""
    raise_problems(value_problems(config))


def value_problems(config: Any) -> Iterator[Problem]:
    """Finds values out of their limits."""
    for key, value in settings_of(config):
        limit = next((LIMITS[pattern] for pattern in LIMITS if fnmatchcase(key, pattern)), None)
        if limit and (problem := limit.problem(key, value)):
            yield problem
    test = get_by_key(config, 'model.test_cfg') or {}
    for name in ('crop_size', 'stride'):
        if test.get('mode') == 'slide' and test.get(name) is None:
            yield Problem(f'model.test_cfg.{name}', 'missing', 'one for mode="slide"')
    sides = zip(test.get('crop_size') or (), test.get('stride') or ())
    if test.get('mode') == 'slide' and any(stride > crop for crop, stride in sides):
        found = f'windows of {tuple(test["crop_size"])} leave gaps'
        yield Problem(f'model.test_cfg.stride={tuple(test["stride"])}', found, 'crop_size at most')
