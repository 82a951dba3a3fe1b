"""The model that a folder's config starts from, and the weights of its backbone."""

from collections.abc import Mapping
from typing import Any

from mmengine.registry import DefaultScope

from mmseg_cct.config.compose import merged
from mmseg_cct.config.load import load_config
from mmseg_cct.engine.weights import (
    find_prefix,
    require_fitting_weights,
    require_weights_of_timm,
)
from mmseg_cct.errors import UserError

from .choices import BACKBONES


def base_model(backbone: str) -> Any:
    """Loads the file in `configs/_base_/models` of a key of `BACKBONES`."""
    return load_config(f'_base_/models/{BACKBONES[backbone].model}', {}).model


def frozen_model(backbone: str, weights: str | None) -> Any:
    """Loads that model with the weights in a file, to look at images before a training."""
    model = base_model(backbone)
    return merged(model, dict(backbone=start_settings(model.backbone, weights, False)))


def start_settings(
    backbone: Mapping[str, Any], weights: str | None, from_scratch: bool
) -> dict[str, Any]:
    """Settings of the backbone that say where its weights come from, if not from the model zoo."""
    is_timm = 'pretrained' in backbone
    if weights is None and not from_scratch:
        return {}
    if weights is None:
        if backbone.get('frozen'):
            expected = '--weights, or an encoder that is trained'
            raise UserError('--from-scratch', 'a frozen encoder would stay random', expected)
        return dict(pretrained=False) if is_timm else dict(init_cfg=None)
    with DefaultScope.overwrite_default_scope('mmseg'):
        if is_timm:
            require_weights_of_timm(backbone, weights, 'model.backbone')
            return dict(pretrained_cfg_overlay=dict(file=weights))
        prefix = find_prefix(backbone, weights)
        require_fitting_weights(backbone, weights, prefix, 'model.backbone')
    prefixed = dict(prefix=prefix or None) if prefix or backbone['init_cfg'].get('prefix') else {}
    return dict(init_cfg=dict(**prefixed, checkpoint=weights))
