"""Checks that pretrained weights fit the modules that load them."""

from collections.abc import Iterator, Mapping
from typing import Any

from mmengine.registry import DefaultScope

from mmseg_cct.config.walk import settings_of
from mmseg_cct.engine.safe_loading import address_of
from mmseg_cct.engine.weights import require_fitting_weights, require_weights_of_timm
from mmseg_cct.errors import UserError, raise_problems


def check_pretrained_weights(model: Mapping[str, Any], scope: str | None = 'mmseg') -> None:
    """Checks that the files that a model's `init_cfg` names fit the modules they are for.

    mmengine only warns of weights that do not fit, in the middle of the log, and trains from random
    ones.
    """
    with DefaultScope.overwrite_default_scope(scope):
        raise_problems(_misfits(model))


def _misfits(model: Mapping[str, Any]) -> Iterator[UserError]:
    for key, part in settings_of(model, 'model'):
        if not isinstance(part, Mapping):
            continue
        init = part.get('init_cfg')
        file = part.get('pretrained') and (part.get('pretrained_cfg_overlay') or {}).get('file')
        try:
            if file:
                require_weights_of_timm(part, file, key)
            if 'type' in part and isinstance(init, Mapping) and init.get('type') == 'Pretrained':
                checkpoint = init['checkpoint']
                if '://' not in checkpoint or address_of(checkpoint):  # else only mmengine reads it
                    require_fitting_weights(part, checkpoint, init.get('prefix') or '', key)
        except UserError as error:
            yield error
