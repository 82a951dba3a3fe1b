"""Checks a checkpoint's content: plain tensors, and the types that mmengine writes."""

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any

import numpy as np
import torch
from torch import Tensor

from mmseg_cct.config.limits import is_palette
from mmseg_cct.config.walk import at
from mmseg_cct.errors import UserError


def require_plain_tensors(content: Any, checkpoint: str) -> None:
    """Checks that every tensor is dense and has no more elements than are stored.

    An expanded one of a few bytes could fill the memory; others have no values to train on.
    """
    todo, seen = [('', content)], set()
    while todo:
        key, value = todo.pop()
        if isinstance(value, Tensor):
            if found := _unlike_a_plain_one(value):
                raise UserError(
                    checkpoint, f'{key.lstrip(".") or "it"} is {found}', 'dense tensors'
                )
        elif isinstance(value, (Mapping, list, tuple)) and id(value) not in seen:
            seen.add(id(value))  # a list may hold itself
            items = value.items() if isinstance(value, Mapping) else enumerate(value)
            todo += ((f'{key}.{name}', part) for name, part in items)


def _unlike_a_plain_one(tensor: Tensor) -> str | None:
    if tensor.is_meta:
        return 'a meta tensor, which has no values'
    if tensor.layout is not torch.strided or tensor.is_nested or tensor.is_quantized:
        return f'a tensor of layout {tensor.layout}, {tensor.dtype}'
    if tensor.numel() * tensor.element_size() > tensor.untyped_storage().nbytes():
        return f'a tensor of {tensor.numel()} elements that shares some of them'
    return None


def require_known_types(content: Mapping[str, Any], checkpoint: str, training: bool) -> None:
    """Checks that the parts of a checkpoint have the types that mmengine writes.

    Parts that only a resumed training needs are checked only if `training`.
    """
    for key, value, is_right, expected in _parts(content, training):
        if not is_right(value):
            shown = (
                repr(value)[:80] if isinstance(value, str) else f'of type {type(value).__name__}'
            )
            raise UserError(checkpoint, f'its {key} is {shown}', expected)


def _parts(content: Mapping[str, Any], training: bool) -> Iterator[tuple[str, Any, Any, str]]:
    """Yields the key, value and rule of each part that exists."""
    yield 'content', content, *_DICT
    for key, rule in {**_RULES, **(_TRAINING if training else {})}.items():
        if (value := at(content, key)) is not None:
            yield key, value, *rule
    meta = at(content, 'meta.dataset_meta') or {}
    for part in (meta, *(meta.get('domains') or {}).values()):
        yield 'meta.dataset_meta', part, *_DICT
        for key, rule in (('classes', _NAMES), ('palette', _PALETTE)):
            if part.get(key) is not None:
                yield f'meta.dataset_meta {key}', part[key], *rule
    if not training:
        return
    for key in _NEEDED:
        parent, _, name = key.rpartition('.')
        if at(content, parent) is not None:
            yield parent, at(content, parent), lambda part, key=name: key in part, f'{name} in it'
    for key, value in (at(content, 'message_hub.runtime_info') or {}).items():
        for start, rule in _OF_THE_BEST.items():
            if key.startswith(start) and value is not None:
                yield f'message_hub.runtime_info.{key}', value, *rule


def _is_dict(value: Any) -> bool:
    return isinstance(value, Mapping) and all(isinstance(key, str) for key in value)


def _is_list_of(is_right: Callable[[Any], bool], value: Any) -> bool:
    return isinstance(value, (list, tuple)) and all(map(is_right, value))


def _is_count(value: Any) -> bool:
    # also for a seed, of which NumPy takes 32 bits
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 2**32


def _is_group(value: Any) -> bool:
    return _is_dict(value) and isinstance(value.get('params'), list)


def _are_schedules(value: Any) -> bool:
    if isinstance(value, Mapping):  # by optimizer
        return all(map(_are_schedules, value.values()))
    steps = ('last_step', '_global_step')
    return _is_list_of(
        lambda state: _is_dict(state) and all(_is_count(state.get(step, 0)) for step in steps),
        value,
    )


_DICT = _is_dict, 'a dict with text as keys'
_NAMES = partial(_is_list_of, lambda name: isinstance(name, str)), 'a list of names'
_PALETTE = is_palette, 'a list of colours, three numbers from 0 to 255 each'
_COUNT = _is_count, 'a number from 0 on'
_RULES = {
    'state_dict': _DICT,
    'meta': _DICT,
    'meta.iter': _COUNT,
    'meta.epoch': _COUNT,
    'meta.dataset_meta': _DICT,
    'meta.dataset_meta.domains': _DICT,
}
_TRAINING = {
    'meta.seed': _COUNT,
    'optimizer': _DICT,
    'optimizer.param_groups': (partial(_is_list_of, _is_group), 'a list of dicts with params'),
    'optimizer.state': (
        lambda value: isinstance(value, Mapping) and all(map(_is_dict, value.values())),
        'a dict of dicts',
    ),
    'optimizer.base_param_settings': _DICT,
    'param_schedulers': (_are_schedules, 'a list of dicts, the states of schedules'),
    'message_hub': _DICT,
    'ema_state_dict': _DICT,
    'teacher_state_dict': _DICT,
    'message_hub.log_scalars': _DICT,
    'message_hub.runtime_info': _DICT,
    'message_hub.runtime_info.keep_ckpt_ids': (partial(_is_list_of, _is_count), 'a list of counts'),
    'message_hub.resumed_keys': _DICT,
}
_NEEDED = (
    'meta.iter',
    'meta.epoch',
    'message_hub.log_scalars',
    'message_hub.runtime_info',
    'message_hub.resumed_keys',
)
_OF_THE_BEST = {
    'best_ckpt': (lambda value: isinstance(value, str), 'the name of a file'),
    'best_score': (lambda value: isinstance(value, (int, float, np.number)), 'a number'),
}
