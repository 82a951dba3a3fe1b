"""Checks that weights are finite and fit the network that loads them."""

import copy
from collections.abc import Mapping
from importlib import import_module
from typing import Any

import torch
from mmseg.models import SwinTransformer
from mmseg.registry import MODELS
from torch import Tensor

from mmseg_cct.config.walk import forget_initial_weights
from mmseg_cct.engine.safe_loading import address_of, load_alone
from mmseg_cct.errors import UserError
from mmseg_cct.models import MultiDomainCCTSegmentor, TimmViT
from mmseg_cct.utils.text import error_line


def require_finite_weights(
    state: Mapping[str, Any], checkpoint: str, training: bool = False
) -> None:
    """Checks that weights are finite numbers."""
    averages = ('running_mean', 'running_var') if training else ()
    checked = {name: value for name, value in state.items() if not name.endswith(averages)}
    if non_finite := [name for name, value in checked.items() if not value.isfinite().all()]:
        first = f'the first is {non_finite[0]}'
        message = f'{len(non_finite)} of its weights are NaN or infinite, {first}'
        raise UserError(checkpoint, message, 'finite weights')


def weights(content: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the weights in a checkpoint."""
    state = content.get('state_dict', content)
    return {str(name).removeprefix('module.'): value for name, value in state.items()}


def is_training_only(name: str, segmentor: type | None) -> bool:
    """Whether a weight, or a part of a model, serves the training alone; no published one has it.

    A segmentor lists these parts in its attribute `training_only`. One without the attribute, such
    as MMSeg's own, has those of the method at most.
    """
    parts = getattr(segmentor, 'training_only', MultiDomainCCTSegmentor.training_only)
    return any(part in parts for part in name.split('.'))


def require_matching_weights(
    model: torch.nn.Module, content: Mapping[str, Any], checkpoint: str, training: bool
) -> None:
    """Checks that a checkpoint has every weight of a model, in the same shape.

    mmengine only logs what does not fit and leaves those weights random. With `training`, the parts
    that only training uses must match too, and the checkpoint may have no other weights.
    """
    saved, expected = _shapes(weights(content)), _shapes(model.state_dict())
    wrong = [
        f'{name} is {saved.get(name, "missing")}, expected {shape}'
        for name, shape in expected.items()
        if saved.get(name) != shape
        and (training or not is_training_only(name, type(model)))
        # A counter that checkpoints of other programs lack.
        and not (name not in saved and name.endswith('num_batches_tracked'))
    ]
    if training and not wrong:
        wrong = [f'{name} is no part of the model' for name in saved if name not in expected]
    if wrong:
        meta = (content.get('meta') or {}).get('dataset_meta') or {}
        hint = f' (trained on {len(meta["classes"])} classes)' if meta.get('classes') else ''
        problem = f'does not fit the config in {len(wrong)} of {len(expected)} entries'
        raise UserError(checkpoint, f'{problem}, the first: {wrong[0]}{hint}')


def require_initial_weights(
    model: torch.nn.Module, content: Mapping[str, Any], checkpoint: str
) -> None:
    """Checks that the weights that training starts from are those of its network.

    New parts, such as auxiliary decoders or a layer for other classes, stay as initialised.
    """
    state = model.state_dict()
    needed = {name: state[name] for name in state if not is_training_only(name, type(model))}
    hint = ' (weights of an encoder alone belong in model.backbone.init_cfg)'
    _require_half(weights(content), needed, f'load_from={checkpoint!r}:', 'the model', hint)


def require_pretrained_weights(module: Mapping[str, Any], key: str) -> None:
    """Checks that the file that a module's config starts from, if any, fits it.

    mmengine only warns of weights that do not fit, in the middle of the log, and leaves random
    ones. `key` is the module's in the config.
    """
    file = module.get('pretrained') and (module.get('pretrained_cfg_overlay') or {}).get('file')
    if file:
        require_weights_of_timm(module, file, key)
    init = module.get('init_cfg')
    if isinstance(init, Mapping) and init.get('type') == 'Pretrained':
        checkpoint = init['checkpoint']
        if '://' not in checkpoint or address_of(checkpoint):  # mmengine alone reads others
            require_fitting_weights(module, checkpoint, init.get('prefix') or '', key)


def require_fitting_weights(
    module: Mapping[str, Any], checkpoint: str, prefix: str, key: str
) -> None:
    """Checks that the weights of a file, below a prefix, fit a module, which is built without them.

    The file may be an address or a name in the model zoo; `key` is the module's in the config.
    """
    saved, built = _weights_of_file(checkpoint), _build_untrained(module)
    require_finite_weights(saved, checkpoint)
    expected = built.state_dict()
    if isinstance(built, SwinTransformer):  # MMSeg's removes the prefix itself
        prefix = prefix or _missing_prefix(saved, expected)
    if prefix:
        start = prefix.rstrip('.') + '.'
        saved = {n.removeprefix(start): v for n, v in saved.items() if n.startswith(start)}
    missing = _missing_prefix(saved, expected)
    hint = f"; set {key}.init_cfg.prefix='{missing}', as in the file" if missing else ''
    _require_half(saved, expected, f'{key}.init_cfg: {checkpoint}', module['type'], hint)


def find_prefix(module: Mapping[str, Any], checkpoint: str) -> str:
    """Finds the prefix that a module's `init_cfg` must name to start from a file; '' for none.

    A whole network's file has its backbone below one.
    """
    built = _build_untrained(module)
    if isinstance(built, SwinTransformer):  # MMSeg's removes it itself
        return ''
    return _missing_prefix(_weights_of_file(checkpoint), built.state_dict())


def require_weights_of_timm(module: Mapping[str, Any], checkpoint: str, key: str) -> None:
    """Checks that the weights of a file fit a network of timm, which skips those that do not."""
    file = f'{key}.pretrained_cfg_overlay.file: {checkpoint}'
    try:
        overlay = dict(module.get('pretrained_cfg_overlay') or {}, file=checkpoint)
        built = MODELS.build({**module, 'pretrained_cfg_overlay': overlay})
        saved = import_module('timm.models').load_state_dict(checkpoint, weights_only=True)
    except Exception as error:  # timm and torch raise nearly anything on non-checkpoints
        name = module['model_name']
        raise UserError(f'{file} does not fit {name}', error_line(error, 160)) from error
    if not isinstance(built, TimmViT):  # which skips none
        _require_half(saved, built.timm_model.state_dict(), file, module['model_name'])


def _weights_of_file(checkpoint: str) -> dict[str, Tensor]:
    content = load_alone(checkpoint)
    content = content if isinstance(content, Mapping) else {}
    parts = (content.get(key) for key in ('state_dict', 'model'))
    state = next((part for part in parts if isinstance(part, Mapping) and part), content)
    return {name: value for name, value in weights(state).items() if isinstance(value, Tensor)}


def _build_untrained(module: Mapping[str, Any]) -> torch.nn.Module:
    """Builds a module whose names and shapes are looked at, not its weights."""
    settings = copy.deepcopy(dict(module))
    forget_initial_weights(settings)
    return MODELS.build(settings)


def _missing_prefix(saved: Mapping[str, Any], expected: Mapping[str, Any]) -> str:
    """Finds what precedes the names in a file that has none of the expected ones; else ''."""
    if saved.keys() & expected.keys():
        return ''
    ends = ((name, full) for name in expected for full in saved if full.endswith(f'.{name}'))
    return next((full.removesuffix(name) for name, full in ends), '')


def _require_half(
    state: Mapping[str, Any], needed: Mapping[str, Any], file: str, network: str, hint: str = ''
) -> None:
    """Checks that a file has at least half of a network's weights, with the same names and shapes.

    mmengine only logs the others, even if nothing fits, and trains from random ones.
    """
    saved = _shapes(state)
    expected = _shapes({n: value for n, value in needed.items() if value.is_floating_point()})
    fitting = sum(saved.get(name) == shape for name, shape in expected.items())
    if 2 * fitting < len(expected):
        problem = f'{fitting} of the {len(expected)} weights of {network} in its shape'
        raise UserError(f'{file} has {problem}; expected at least half{hint}')


def _shapes(state: Mapping[str, Tensor]) -> dict[str, tuple[int, ...]]:
    return {name: tuple(value.shape) for name, value in state.items()}
