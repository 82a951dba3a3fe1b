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
from .walk import as_list, get_by_key, sets_by_domain, settings_of

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


def fitting_overlay(method: str | Mapping[str, Any], decoder: str | None) -> dict[str, Any]:
    """Returns the overlay of a method for a model whose main decoder is of this type.

    A method replaces no main decoder; its settings of another type are left out.
    """
    overlay = read_method(method) if isinstance(method, str) else copy.deepcopy(dict(method))
    model = overlay.get('model') or {}
    if (model.get('decode_head') or {}).get('type', decoder) != decoder:
        del model['decode_head']
    return overlay


def forget_own_scope(settings: Any) -> None:
    """Drops the scope that mmengine gives to settings from a base `mmseg_cct::...`.

    This package registers its components with MMSeg's, so builders would find none in that scope.
    """
    for _, value in settings_of(settings, 'config'):
        if isinstance(value, dict) and value.get('_scope_') == SCOPE:
            del value['_scope_']


def with_method(config: Config, method: str | Mapping[str, Any]) -> Config:
    """Makes the config of another method.

    1. The overlay of the method is fitted to the config, or refused.
    2. What the config holds of the method before is taken out.
    3. `model.auxiliary_head` changes the auxiliary decoders, which may be in a list with
       MMSegmentation's own heads, or removes them and the hooks that set their attributes.
    4. `train_dataloader.dataset` is merged over the set of each domain.
    5. Everything else is merged where it stands: dicts key by key, all else is replaced.

    `method` is its name, its file or its overlay. Returns a changed copy.

    Raises:
        UserError: There is no such method, or it does not fit the config.
    """
    name = method if isinstance(method, str) else 'of this study'
    *stages, main = as_list(config.model.get('decode_head')) or [{}]
    overlay = ConfigDict(fitting_overlay(method, main.get('type')))
    model = overlay.setdefault('model', ConfigDict())
    dataset = overlay.get('train_dataloader', {}).pop('dataset', {})
    _require_fitting(config, model, name)
    _fit_to_domains(overlay, config)
    if stages and model.get('type') == _BASELINE:
        model.type = f'Cascade{_BASELINE}'

    config = _without_method(config)
    try:
        if 'auxiliary_head' in model:
            _merge_decoders(config, model.pop('auxiliary_head'))
        for training_set in training_sets(config):
            training_set.update(merged(training_set, dataset))
        _drop_none(config, overlay)
        config.merge_from_dict(overlay)
    except (KeyError, TypeError) as error:
        source = config.filename or 'the config'
        raise UserError(source, f'the method {name} does not fit: {one_line(error)}') from error
    if find_bank(config) is None:
        _remove_hooks_of_decoders(config)
    remove_hooks(config)
    return config


def _require_fitting(config: Config, model: Mapping[str, Any], name: str) -> None:
    """Refuses a method for decoders, or for one or several domains, that the config lacks."""
    source, domains = config.filename or 'the config', config.model.get('domains')
    if find_bank(config) is None and model.get('auxiliary_head', _BANK) is not None:
        problem = f'model.auxiliary_head has no {_BANK}, so the method {name} cannot change it'
        raise UserError(source, problem, 'a config of CCT')
    if not fits_domains(model, bool(domains)):
        overlays = {m: read_method(m).get('model', {}) for m in method_names()}
        fitting = [m for m in overlays if fits_domains(overlays[m], bool(domains))]
        problem = f'trains {"several domains" if domains else "one domain"}, and the method {name}'
        raise UserError(source, f'{problem} does not', f'one of {", ".join(fitting)}')


def fits_domains(model: Mapping[str, Any], several: bool) -> bool:
    """Whether a method, by its overlay of the model, trains several domains, or one."""
    if several:  # it keeps their segmentor, as the supervised baseline does
        return model.get('type', _BASELINE) == _BASELINE and 'loss_consistency' not in model
    return not model.get('discriminator')


def _fit_to_domains(overlay: ConfigDict, config: Config) -> None:
    """Fits an overlay, in place, to a config of several domains, whose segmentor stays."""
    if not config.model.get('domains'):
        return
    overlay.model.pop('type', None)
    if overlay.model.get('discriminator'):
        in_channels = config.model.auxiliary_head.in_channels
        overlay.model.discriminator.setdefault('in_channels', in_channels)
    for hook in (overlay.get('default_hooks') or {}).values():
        if hook and 'attribute' in hook and not hook['attribute'].startswith('domains.'):
            hook['attribute'] = f'domains.*.{hook["attribute"]}'


def _without_method(config: Config) -> Config:
    """Copies a config without what a method has added; its auxiliary decoders stay as set.

    A config of `mmseg-cct new-config` holds a method. A method's own parts are those that no
    config of CCT has: another segmentor, its arguments, and views of the images.
    """
    config = copy.deepcopy(config)
    segmentors, arguments = _parts_of_methods()
    if config.model.get('type') not in segmentors:
        return config
    config.model.type = 'CCTSegmentor'
    for argument in arguments:
        config.model.pop(argument, None)
    for training_set in training_sets(config):
        training_set.pop('strong_views', None)
    return config


@cache
def _parts_of_methods() -> tuple[set[str], set[str]]:
    """Returns the segmentors of all methods, and the arguments that these add to a model."""
    models = [read_method(method).get('model', {}) for method in method_names()]
    segmentors = {model['type'] for model in models if 'type' in model} - {_BASELINE}
    return segmentors, set().union(*models) - {'type', *_HEADS}


def _merge_decoders(config: Config, settings: Mapping[str, Any] | None) -> None:
    """Merges settings over the auxiliary decoders of a config, in place; None removes them."""
    bank, heads = find_bank(config), config.model.get('auxiliary_head')
    if settings is not None and bank is not None:
        # a method changes some of the paper's
        complete = with_perturbations(bank) if settings.get('perturbations') else bank
        bank.update(merged(complete, settings))
    elif isinstance(heads, (list, tuple)):
        config.model.auxiliary_head = [head for head in heads if head is not bank] or None
    else:
        config.model.auxiliary_head = None


def _drop_none(config: Any, overlay: Mapping[str, Any]) -> None:
    """Drops None, in place, where an overlay has a dict, which mmengine merges over dicts alone."""
    for key, value in overlay.items():
        if isinstance(value, Mapping) and key in config:
            if config[key] is None:
                del config[key]
            elif isinstance(config[key], Mapping):
                _drop_none(config[key], value)


def _remove_hooks_of_decoders(config: Config) -> None:
    """Removes the hooks, in place, that set attributes of auxiliary decoders."""
    for name, hook in list((config.get('default_hooks') or {}).items()):
        if re.match(r'(domains\.\*\.)?auxiliary_head\.', (hook or {}).get('attribute', '')):
            del config.default_hooks[name]


def remove_hooks(config: Config) -> None:
    """Removes hooks that a method or an option sets to None; mmengine accepts that of its own."""
    hooks = config.get('default_hooks') or {}
    for name in [name for name, hook in hooks.items() if hook is None and name not in _OWN_HOOKS]:
        del hooks[name]


def find_bank(config: Config) -> ConfigDict | None:
    """Finds the auxiliary decoders, which may be in a list of heads: the object, not a copy."""
    for head in filter(None, as_list((config.get('model') or {}).get('auxiliary_head'))):
        head_class = head.get('type')
        head_class = MODELS.get(head_class) if isinstance(head_class, str) else head_class
        if any(base.__name__ == _BANK for base in getattr(head_class, '__mro__', ())):
            return head
    return None


def with_perturbations(bank: Mapping[str, Any]) -> dict[str, Any]:
    """Returns settings of auxiliary decoders that name their perturbations, by default all."""
    default = copy.deepcopy(MODELS.get(_BANK).default_perturbations)
    return {**bank, 'perturbations': bank.get('perturbations') or default}


def merged(common: Mapping[str, Any], changes: Mapping[str, Any]) -> ConfigDict:
    """Returns `common` with changes merged over it key by key, as `_base_` does.

    A dict takes the place of None: it adds what was removed.
    """
    result = Config(dict(part=copy.deepcopy(common)))
    _drop_none(result.part, changes)
    result.merge_from_dict(dict(part=changes))
    return result.part


def training_sets(config: Config) -> list[ConfigDict]:
    """Finds the training set of a config, or those of its domains."""
    return list(sets_by_domain(get_by_key(config, 'train_dataloader.dataset', {})).values())


def with_labels(config: Config, labels: int) -> Config:
    """Sets the number of labelled images in each domain, whose set must have a `split_dir`."""
    config = copy.deepcopy(config)
    for dataset in training_sets(config):
        if not dataset.get('split_dir'):
            lists = f'{labels}_labeled.txt and {labels}_unlabeled.txt'
            expected = f'the folder of {lists} (mmseg-cct make-splits makes them)'
            raise UserError('train_dataloader.dataset.split_dir', 'missing', expected)
        dataset.num_labeled = labels
    return config
