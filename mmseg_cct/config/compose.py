"""Composes a run: a config, the overlay of a method, and a number of labels.

A config has the model, the data and the schedule. A method is a config with a few dicts that
are merged over it.
"""

import copy
import re
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

from mmengine.config import Config, ConfigDict
from mmseg.registry import MODELS

from mmseg_cct.errors import UserError
from mmseg_cct.utils.text import nearest, one_line

from .shipped import METHODS, PLAIN, SCOPE, method_names
from .walk import as_list, settings_of

_BANK, _BASELINE = 'PerturbedDecoderBank', 'EncoderDecoder'
_HEADS = ('decode_head', 'auxiliary_head')
# Hooks that mmengine adds by itself; None removes one of these.
_OWN_HOOKS = {'runtime_info', 'timer', 'sampler_seed', 'logger', 'param_scheduler', 'checkpoint'}


def read_method(method: str) -> dict[str, Any]:
    """Reads the overlay of a method, by its name or the path of a custom file; `cct` has none."""
    if method == PLAIN:
        return {}
    file = Path(method) if method.endswith('.py') else METHODS / f'{method}.py'
    if not file.is_file():
        raise UserError(f'method {method}', 'no such method', nearest(method, method_names()))
    overlay = Config.fromfile(file).to_dict()
    forget_own_scope(overlay)
    return overlay


def forget_own_scope(settings: Any) -> None:
    """Drops the scope that mmengine gives to settings from a base `mmseg_cct::...`.

    This package registers its components with MMSeg's, so builders would find none in that scope.
    """
    for _, value in settings_of(settings, 'config'):
        if isinstance(value, dict) and value.get('_scope_') == SCOPE:
            del value['_scope_']


def merge_method(config: Config, method: str | Mapping[str, Any]) -> None:
    """Makes a config train with another method, its name, its file or its overlay.

    Dicts are merged key by key, and everything else is replaced. Two parts have no fixed place:
    `model.auxiliary_head` means the auxiliary decoders, which may be in a list with
    MMSegmentation's own heads, and `train_dataloader.dataset` means the set of each domain.
    """
    overlay = read_method(method) if isinstance(method, str) else method
    name = method if isinstance(method, str) else 'of this study'
    place = config.filename or 'the config'
    rest: Any = ConfigDict(overlay)
    model = rest.pop('model', {})
    dataset = rest.get('train_dataloader', {}).pop('dataset', {})
    bank = find_bank(config)
    if bank is None and model.get('auxiliary_head', _BANK) is not None:
        found = f'model.auxiliary_head has no {_BANK}, so the method {name} cannot change it'
        expected = 'a config of CCT'
        raise UserError(place, found, expected)
    _forget_method(config)
    if config.model.get('domains'):
        _fit_to_domains(config, rest, model, name)
    elif model.get('discriminator'):
        raise UserError(place, 'trains one domain', f'a config of several for the method {name}')
    head = config.model.get('decode_head') or {}
    if model.get('decode_head', {}).get('type', head.get('type')) != head.get('type'):
        del model['decode_head']  # a method replaces no main decoder; these settings fit another
    if 'auxiliary_head' in model:
        own, heads = model.pop('auxiliary_head'), config.model.get('auxiliary_head')
        if own is not None and bank is not None:
            if own.get('perturbations'):  # a method changes some of the paper's
                fill_perturbations(bank)
            bank.update(merged(bank, own))
        elif isinstance(heads, (list, tuple)):
            config.model.auxiliary_head = [head for head in heads if head is not bank] or None
        else:
            config.model.auxiliary_head = None
    _drop_none(config, rest)
    _drop_none(config.model, model)
    try:
        config.merge_from_dict({'model': model, **rest})
    except (KeyError, TypeError) as error:
        raise UserError(place, f'the method {name} does not fit: {one_line(error)}') from error
    for part in training_sets(config):
        part.update(merged(part, dataset))
    if find_bank(config) is None:  # hooks that set attributes of the decoders go with them
        for key, hook in list((config.get('default_hooks') or {}).items()):
            if re.match(r'(domains\.\*\.)?auxiliary_head\.', (hook or {}).get('attribute', '')):
                del config.default_hooks[key]
    remove_hooks(config)


@cache
def _overlays() -> tuple[dict[str, Any], ...]:
    return tuple(map(read_method, method_names()))


def remove_hooks(config: Config) -> None:
    """Removes hooks that a method or an option sets to None; mmengine accepts that of its own."""
    hooks = config.get('default_hooks') or {}
    for name in [name for name, hook in hooks.items() if hook is None and name not in _OWN_HOOKS]:
        del hooks[name]


def _forget_method(config: Config) -> None:
    """Takes back what another method has added to a config; its auxiliary decoders stay as set.

    A config of `tools/new_config.py` holds a method. A method's own parts are those that no
    config of CCT has: other segmentors, their arguments, and views of the images.
    """
    overlays = _overlays()
    models = [overlay.get('model', {}) for overlay in overlays]
    if config.model.get('type') not in {model.get('type') for model in models} - {_BASELINE}:
        return
    config.model.type = 'CCTSegmentor'
    for key in {key for model in models for key in model} - {'type', *_HEADS}:
        config.model.pop(key, None)
    sets = [overlay.get('train_dataloader', {}).get('dataset', {}) for overlay in overlays]
    for part in training_sets(config):
        for key in {key for dataset in sets for key in dataset} - {'labeled', 'unlabeled'}:
            part.pop(key, None)


def _drop_none(config: Any, overlay: Mapping[str, Any]) -> None:
    """Drops None where an overlay has a dict: a method may add what the config has removed."""
    for key, value in overlay.items():
        if isinstance(value, Mapping) and key in config:
            if config[key] is None:
                del config[key]
            elif isinstance(config[key], Mapping):
                _drop_none(config[key], value)


def _fit_to_domains(config: Config, overlay: Any, model: Any, name: str) -> None:
    """Rejects another segmentor; the supervised baseline keeps the one for several domains."""
    if model.pop('type', 'EncoderDecoder') != 'EncoderDecoder' or 'loss_consistency' in model:
        fitting = [
            each
            for each in method_names()
            if read_method(each).get('model', {}).get('type', 'EncoderDecoder') == 'EncoderDecoder'
        ]
        found = f'trains several domains, which the method {name} does not'
        expected = f'one of {", ".join(fitting)}'
        raise UserError(config.filename or 'the config', found, expected)
    if model.get('discriminator'):
        model.discriminator.setdefault('in_channels', config.model.auxiliary_head.in_channels)
    for hook in (overlay.get('default_hooks') or {}).values():
        if hook and 'attribute' in hook and not hook['attribute'].startswith('domains.'):
            hook['attribute'] = f'domains.*.{hook["attribute"]}'


def find_bank(config: Config) -> ConfigDict | None:
    """Finds the auxiliary decoders, which may be in a list of heads: the object, not a copy."""
    for head in filter(None, as_list((config.get('model') or {}).get('auxiliary_head'))):
        kind = head.get('type')
        kind = MODELS.get(kind) if isinstance(kind, str) else kind
        if any(each.__name__ == _BANK for each in getattr(kind, '__mro__', ())):
            return head
    return None


def fill_perturbations(bank: dict[str, Any]) -> None:
    """Writes the default perturbations into settings of auxiliary decoders that name none."""
    if bank.get('perturbations') is None:
        bank['perturbations'] = copy.deepcopy(MODELS.get(_BANK).default_perturbations)


def merged(common: Mapping[str, Any], own: Mapping[str, Any]) -> ConfigDict:
    """Returns `common` with `own` merged over it key by key, as `_base_` does."""
    result = Config(dict(part=common))
    result.merge_from_dict(dict(part=own))
    return result.part


def training_sets(config: Config) -> list[ConfigDict]:
    """Finds the training set of a config, or those of its domains."""
    dataset = (config.get('train_dataloader') or {}).get('dataset') or {}
    return list((dataset.get('domains') or {'': dataset}).values())


def set_labels(config: Config, labels: int) -> None:
    """Sets the number of labelled images in each domain, whose set must have a `split_dir`."""
    for dataset in training_sets(config):
        if not dataset.get('split_dir'):
            raise UserError(
                config.filename or 'the config',
                'train_dataloader.dataset.split_dir: missing',
                f'the folder of {labels}_labeled.txt and {labels}_unlabeled.txt '
                '(tools/make_splits.py makes them)',
            )
        dataset.num_labeled = labels
