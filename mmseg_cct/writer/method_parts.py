"""Puts a method into the dicts of a written config, which thus needs no tool to compose it."""

import copy
from collections.abc import Mapping
from typing import Any

from mmseg_cct.config.compose import read_method, with_perturbations

# CCT's ramp of λ_u, and an EMA teacher for its targets: the student's own would mislead it.
_WEIGHT = 'auxiliary_head.loss_consistency.loss_weight'
_RAMP = dict(type='RampUpHook', attribute=_WEIGHT, schedule='exp', fraction=0.1)
HOOKS = dict(ramp_up=_RAMP, teacher=dict(type='TeacherHook', decay=0.99))


def method_parts(
    method: str, model: Mapping[str, Any], dataset: Mapping[str, Any], head: str
) -> dict[str, Any]:
    """Merges a method over what a written config changes, as `--method` would over the config.

    In the changes of the `model`, `auxiliary_head` are those of the auxiliary decoders. `head` is
    the type of the main decoder, which some methods' settings fit alone. Returns the parts to write
    by name: `model`, `train_dataloader` with its `dataset`, `default_hooks` and perhaps others. A
    part that the method removes is missing.
    """
    loader = dict(dataset=dict(dataset))
    setting = dict(model=dict(model), train_dataloader=loader, default_hooks=HOOKS)
    overlay = read_method(method)
    overlay_model = dict(overlay.get('model') or {})
    if (overlay_model.get('decode_head') or {}).get('type', head) != head:
        del overlay_model['decode_head']
    if (overlay_model.get('auxiliary_head') or {}).get('perturbations'):  # they change the paper's
        model = setting['model'] = copy.deepcopy(setting['model'])
        model['auxiliary_head'] = with_perturbations(model['auxiliary_head'])
    parts = _merged(setting, {**overlay, 'model': overlay_model})
    if 'auxiliary_head' not in parts['model'] and parts['default_hooks'].get('ramp_up') == _RAMP:
        del parts['default_hooks']['ramp_up']
    return parts


def _merged(base: Mapping[str, Any], overlay: Mapping[str, Any]) -> dict[str, Any]:
    """Merges key by key; None removes a part."""
    result = dict(base)
    for key, value in overlay.items():
        # a written config has no base that a None would have to undo
        if value is None:
            result.pop(key, None)
        elif isinstance(value, Mapping) and isinstance(result.get(key), Mapping):
            result[key] = _merged(result[key], value)
        else:
            result[key] = value
    return result
