"""The range of each setting of a config that no constructor of this package takes.

A component of this package states the `Range` of an argument beside it, by `@ranges`. The table is
for the others: mmengine, MMSeg and torch would fail on a bad value hours later, or never.
"""

from collections.abc import Iterator
from fnmatch import fnmatchcase
from typing import Any

from mmseg_cct.errors import Problem
from mmseg_cct.utils.ranges import Range, at_least, in_unit, number, open_unit, optional, positive

from .walk import get_by_key, settings_of

_SIDES = Range(
    lambda v: isinstance(v, (list, tuple)) and len(v) == 2 and all(map(at_least(1).allows, v)),
    'height and width',
)
_INTERVAL = Range(lambda v: v == -1 or at_least(1).allows(v), 'a number from 1, or -1 for never')
# By pattern of the dotted key; the first match counts, and `*` stands for anything.
LIMITS = {
    # a training of no iterations ends at once, as if it were trained
    'train_cfg.max_iters': at_least(1),
    'train_cfg.max_epochs': at_least(1),
    'train_cfg.val_interval': at_least(1),
    # torch rejects what is below 0 alone
    'optim_wrapper.optimizer.momentum': in_unit,
    'model.*norm_cfg.momentum': optional(in_unit),
    'model.*loss_weight': number(0),
    # mmengine takes 0 for never, and so does a typing error
    '*_hooks.*.interval': _INTERVAL,
    'model*data_preprocessor.size': optional(_SIDES),
    'model*size_divisor': optional(at_least(1)),
    'pseudo_labels.input_size': optional(_SIDES._replace(expected='width and height')),
    'pseudo_labels.scales': Range(
        lambda v: isinstance(v, (list, tuple)) and bool(v) and all(map(positive.allows, v)),
        'a list of positive numbers',
    ),
    'pseudo_labels.thresholds.*': in_unit,
    'pseudo_labels.crf.*_s*': number(0.01),  # pydensecrf crashes on widths much smaller
    'pseudo_labels.crf.*_compat': number(0),
    'pseudo_labels.crf.iterations': at_least(1),
    'pseudo_labels.crf.gt_prob': open_unit,
}


def value_problems(config: Any) -> Iterator[Problem]:
    """Finds values out of their limits."""
    for key, value in settings_of(config):
        limit = next((LIMITS[pattern] for pattern in LIMITS if fnmatchcase(key, pattern)), None)
        if limit and (problem := limit.problem(key, value)):
            yield problem
    for key in ('val_dataloader', 'test_dataloader'):
        batch_size = get_by_key(config, f'{key}.batch_size')
        domains = get_by_key(config, f'{key}.dataset.domains') or ()
        # a batch across the border of two domains comes late, and no model takes it
        if len(domains) > 1 and batch_size not in (1, None):
            yield Problem(f'{key}.batch_size={batch_size}', '', '1, as a batch is of one domain')
