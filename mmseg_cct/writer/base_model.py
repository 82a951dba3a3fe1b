"""The model that the config of a folder changes, and the weights it starts from."""

from collections.abc import Mapping
from typing import Any

from mmengine.registry import DefaultScope

from mmseg_cct.config.load import load_config
from mmseg_cct.engine.weights import require_fitting_weights, require_weights_of_timm
from mmseg_cct.errors import UserError

from .backbones import BACKBONES
from .choices import Choices


def base_model(choices: Choices) -> Any:
    """Loads the file in `configs/_base_/models`."""
    return load_config(f'_base_/models/{BACKBONES[choices.backbone].model}', {}).model


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
        prefix = require_fitting_weights(backbone, weights, None, 'model.backbone')
    prefixed = dict(prefix=prefix or None) if prefix or backbone['init_cfg'].get('prefix') else {}
    return dict(init_cfg=dict(**prefixed, checkpoint=weights))
