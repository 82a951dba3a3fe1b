"""Checks the kind of value of each config section, which all other code relies on."""

from collections.abc import Iterator, Mapping
from fnmatch import fnmatchcase
from typing import Any

from mmseg_cct.errors import Problem, raise_problems
from mmseg_cct.utils.text import one_line

from .walk import settings_of

# Sections by the kind of value that they have, unless it is None; `*` stands for one name.
_SECTIONS: dict[str, tuple[str, ...]] = {
    'dict': (
        'model', 'model.data_preprocessor', 'model.train_cfg', 'model.test_cfg', 'model.domains',
        'model.domains.*', 'model.domains.*.data_preprocessor', '*_dataloader',
        '*_dataloader.dataset', '*_dataloader.dataset.domains', 'train_cfg', 'val_cfg', 'test_cfg',
        'env_cfg', 'optim_wrapper', 'optim_wrapper.optimizer', 'optim_wrapper.clip_grad',
        'default_hooks', 'default_hooks.*', 'visualizer', 'randomness', 'log_processor',
        'pseudo_labels', 'pseudo_labels.images', 'pseudo_labels.segmentation',
        'pseudo_labels.thresholds', 'pseudo_labels.crf',
    ),
    'dict or list of dicts': ('param_scheduler', '*_evaluator'),
    'list of dicts': ('custom_hooks',),
    'text': ('default_scope', 'work_dir', 'load_from', 'experiment_name'),
}  # fmt: skip


def check_structure(config: Any) -> None:
    """Checks that sections of a config are of the kind that all other code relies on."""
    raise_problems(_problems(config))


def _problems(config: Any) -> Iterator[Problem]:
    for key, value in settings_of(config):
        for kind, patterns in _SECTIONS.items():
            is_one = any(
                fnmatchcase(key, pattern) and key.count('.') == pattern.count('.')
                for pattern in patterns
            )
            if is_one and value is not None and not _is_of_kind(value, kind):
                yield Problem(f'{key}={one_line(repr(value), 80)}', '', f'a {kind}, or None')


def _is_of_kind(value: Any, kind: str) -> bool:
    if kind == 'text':
        return isinstance(value, str)
    if isinstance(value, (list, tuple)):
        return 'list' in kind and all(_is_of_kind(part, 'dict') for part in value)
    if isinstance(value, (str, int, float)):
        return False
    return not isinstance(value, Mapping) or kind != 'list of dicts'  # or an object, from Python
