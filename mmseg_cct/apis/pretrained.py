"""Fetches pretrained weights before anything is built, and checks that they fit."""

import copy
import os
from collections.abc import Iterator, Mapping
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple
from urllib.request import urlopen

import torch
from mmengine.registry import DefaultScope
from mmengine.runner.checkpoint import CheckpointLoader
from mmseg.registry import MODELS
from torch import Tensor, nn

from mmseg_cct.config.walk import forget_initial_weights, settings_of
from mmseg_cct.engine.checkpoints import require_finite_weights
from mmseg_cct.engine.safe_loading import address_of, cached_file
from mmseg_cct.errors import UserError
from mmseg_cct.utils.text import error_line

CONNECT_TIMEOUT = 20  # seconds; torch's own download waits for ever


def fetch_pretrained_weights(model: dict[str, Any]) -> None:
    """Fetches every checkpoint that a model's `init_cfg` names into torch's cache.

    mmengine would download them late (after the data set is checked and the model built), without
    a timeout, and with an error that does not help on a machine without network. Local files are
    checked to exist.

    Args:
        model: The config of the model.

    Raises:
        UserError: A file is missing, a name is not in the model zoo or a download failed.
    """
    for key, checkpoint in _named_checkpoints(model):
        url = address_of(checkpoint, f'{key}: ')
        if url is not None:
            _fetch(url, checkpoint, key)
        elif '://' not in checkpoint and not Path(checkpoint).expanduser().is_file():
            raise UserError(
                f'{key}: {checkpoint} is not a file; expected a checkpoint, given for example by '
                f'--cfg-options {key}=FILE'
            )


class Fit(NamedTuple):
    """How the weights of a file fit a module.

    Attributes:
        fitting: Number of the module's weights that the file has in the same shape.
        total: Number of the module's weights.
        other_shape: Names of the weights that the file has in another shape.
        prefix: What the names in the file begin with where the module's do not, such as
            `backbone.`; empty where they are alike.
    """

    fitting: int
    total: int
    other_shape: tuple[str, ...]
    prefix: str


def check_pretrained_weights(model: Mapping[str, Any], scope: str | None = 'mmseg') -> None:
    """Checks that the files that a model's `init_cfg` names fit the modules they are for.

    mmengine warns of weights that do not fit in the middle of the log, and trains from random ones.

    Args:
        model: The config of the model; its weights have been fetched.
        scope: Default scope of the config. A `UserError` tells of a file that is no checkpoint, has
            a weight in another shape, or fits less than half of a module.
    """
    if os.environ.get('LOCAL_RANK', '0') != '0':
        return
    with DefaultScope.overwrite_default_scope(scope):
        for key, part in _pretrained_modules(model):
            init, checkpoint = part['init_cfg'], part['init_cfg']['checkpoint']
            if '://' in checkpoint and address_of(checkpoint) is None:
                continue  # storage that only mmengine reads
            require_fitting_weights(part, checkpoint, init.get('prefix') or '', key)
        for key, part in _timm_files(model):
            require_weights_of_timm(part, part['pretrained_cfg_overlay']['file'], key)


def require_fitting_weights(
    module: Mapping[str, Any], checkpoint: str, prefix: str, key: str
) -> None:
    """Checks that the weights of a file fit a module.

    Args:
        module: The config of the module.
        checkpoint: File, address or name in the model zoo.
        prefix: Beginning of the names of the module's weights in the file.
        key: The module's dotted key in the config.

    Raises:
        UserError: The file is no checkpoint, has a weight in another shape, or fits less than half
            of the module.
    """
    fit = fit_of_weights(module, checkpoint, prefix)
    where = f'{key}.init_cfg: {checkpoint}'
    if fit.other_shape:
        raise UserError(
            f'{where} has {len(fit.other_shape)} weights in another shape than {module["type"]}, '
            f'the first is {fit.other_shape[0]}; expected weights of the same network'
        )
    if 2 * fit.fitting < fit.total:
        hint = f"; set {key}.init_cfg.prefix='{fit.prefix}', as in the file" if fit.prefix else ''
        raise UserError(
            f'{where} has {fit.fitting} of the {fit.total} weights of {module["type"]}; expected '
            f'most of them{hint}'
        )


def require_weights_of_timm(module: Mapping[str, Any], checkpoint: str, key: str) -> None:
    """Checks that the weights of a file fit a network of timm, which leaves out what does not.

    Args:
        module: The config of the module, such as MMSeg's `TIMMBackbone`.
        checkpoint: A file, of safetensors too.
        key: The module's dotted key in the config.

    Raises:
        UserError: The file cannot be read, or fits less than half of the network.
    """
    where = f'{key}.pretrained_cfg_overlay.file: {checkpoint}'
    try:
        overlay = dict(module.get('pretrained_cfg_overlay') or {}, file=checkpoint)
        built = MODELS.build({**module, 'pretrained_cfg_overlay': overlay}).timm_model
        found = import_module('timm.models').load_state_dict(checkpoint, weights_only=True)
    except UserError:  # of `TimmViT`, which leaves nothing out
        raise
    except Exception as error:  # timm and torch raise nearly anything on what is no checkpoint
        name = module['model_name']
        raise UserError(f'{where} does not fit {name}: {error_line(error, 160)}') from error
    if module['type'].endswith('TimmViT'):
        return
    expected = {name: value.shape for name, value in built.state_dict().items()}
    fitting = sum(n in found and found[n].shape == shape for n, shape in expected.items())
    if 2 * fitting < len(expected):
        raise UserError(
            f'{where} has {fitting} of the {len(expected)} weights of {module["model_name"]}; '
            'expected most of them'
        )


def fit_of_weights(module: Mapping[str, Any], checkpoint: str, prefix: str = '') -> Fit:
    """Compares the names and shapes of the weights in a file with those of a module.

    Args:
        module: The config of the module, which is built without weights.
        checkpoint: File, address or name in the model zoo.
        prefix: Beginning of the names of the module's weights in the file.

    Returns:
        How they fit.

    Raises:
        UserError: The file is no checkpoint, or one of its weights is not finite.
    """
    try:
        content = CheckpointLoader.load_checkpoint(checkpoint, 'cpu', logger='silent')
        content = content.get('state_dict') or content.get('model') or content
        state = {n.removeprefix('module.'): v for n, v in content.items() if isinstance(v, Tensor)}
    except UserError:
        raise
    except Exception as error:  # torch raises nearly anything on what is no checkpoint
        raise UserError(
            f'{checkpoint}: cannot be read ({error_line(error, 120)}); expected a checkpoint'
        ) from error
    require_finite_weights(state, checkpoint)
    found = {name: tuple(value.shape) for name, value in state.items()}
    bare = copy.deepcopy(dict(module))
    forget_initial_weights(bare)
    built: nn.Module = MODELS.build(bare)
    expected = {
        name: tuple(value.shape)
        for name, value in built.state_dict().items()
        if value.is_floating_point()
    }
    if prefix:
        start = prefix.rstrip('.') + '.'
        found = {n.removeprefix(start): s for n, s in found.items() if n.startswith(start)}
    inner = '' if found.keys() & expected.keys() else _beginning(found, expected)
    if inner and type(built).__name__ == 'SwinTransformer':  # MMSeg's cuts it off itself
        found, inner = {name.removeprefix(inner): shape for name, shape in found.items()}, ''
    common = found.keys() & expected.keys()
    fitting = {name for name in common if found[name] == expected[name]}
    # Transformers interpolate what belongs to positions.
    other_shape = sorted(
        name for name in common - fitting if 'position' not in name and 'pos_embed' not in name
    )
    return Fit(len(fitting), len(expected), tuple(other_shape), inner)


def _beginning(found: Mapping[str, Any], expected: Mapping[str, Any]) -> str:
    """What the names of a module's weights begin with in a file that has them under others."""
    for name in expected:
        for other in found:
            if other.endswith(f'.{name}'):
                return other.removesuffix(name)
    return ''


def _modules(config: Any) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Yields the dotted key and the settings of the model and of each of its parts."""
    for key, part in settings_of(config, 'model'):
        if isinstance(part, Mapping):
            yield key, part


def _pretrained_modules(config: Any) -> Iterator[tuple[str, Any]]:
    """Yields the dotted key and the settings of each module with a `Pretrained` checkpoint."""
    for key, part in _modules(config):
        init = part.get('init_cfg')
        if 'type' in part and isinstance(init, Mapping) and init.get('type') == 'Pretrained':
            yield key, part


def _timm_files(config: Any) -> Iterator[tuple[str, Any]]:
    """Yields the dotted key and the settings of each module that timm loads from a file."""
    for key, part in _modules(config):
        if part.get('pretrained') and (part.get('pretrained_cfg_overlay') or {}).get('file'):
            yield key, part


def _named_checkpoints(config: Any) -> Iterator[tuple[str, str]]:
    """Yields the dotted key and the value of each `Pretrained` checkpoint in a config."""
    for key, part in _modules(config):
        if part.get('type') == 'Pretrained' and isinstance(part.get('checkpoint'), str):
            yield f'{key}.checkpoint', part['checkpoint']
        # The older spelling, which MMSeg's segmentors and backbones still accept.
        if isinstance(part.get('pretrained'), str):
            yield f'{key}.pretrained', part['pretrained']


def _fetch(url: str, checkpoint: str, key: str) -> None:
    target = cached_file(url)
    # One download per machine; the other processes wait for it where mmengine loads the file.
    if target.exists() or os.environ.get('LOCAL_RANK', '0') != '0':
        return
    try:
        urlopen(url, timeout=CONNECT_TIMEOUT).close()
        target.parent.mkdir(parents=True, exist_ok=True)
        torch.hub.download_url_to_file(url, str(target))
    except OSError as error:
        raise UserError(
            f'{key}: {checkpoint} could not be downloaded ({error}); fetch {url} elsewhere and put '
            f'it at {target}, or name any local file by --cfg-options {key}=FILE'
        ) from error
