"""Auxiliary decoders and MMSeg's auxiliary heads, which share the setting `auxiliary_head`."""

from collections.abc import MutableMapping
from typing import Any

from mmseg.registry import MODELS
from torch import Tensor, nn

from mmseg_cct.models.heads import PerturbedDecoderBank


def listed(auxiliary_head: Any) -> list[Any]:
    """Lists the settings in `model.auxiliary_head`: one head, several or None; no copies."""
    settings = auxiliary_head if isinstance(auxiliary_head, (list, tuple)) else [auxiliary_head]
    return [each for each in settings if each]


def split_settings(auxiliary_head: Any) -> tuple[list[Any], Any]:
    """Splits `model.auxiliary_head` into the settings of MMSeg's heads and of the decoders.

    MMSeg's heads keep their order; the decoders' settings are None if there are none. All are the
    given objects, no copies.
    """
    settings = listed(auxiliary_head)
    banks = [each for each in settings if _is_bank(each)]
    return [each for each in settings if not _is_bank(each)], banks[0] if banks else None


def _is_bank(settings: Any) -> bool:
    kind = settings['type']
    kind = MODELS.get(kind) if isinstance(kind, str) else kind
    return isinstance(kind, type) and issubclass(kind, PerturbedDecoderBank)


def take_names_of_mmseg(
    state: MutableMapping[str, Tensor], prefix: str, heads: nn.ModuleList
) -> None:
    """Renames the weights of MMSeg's auxiliary heads, in place, to where `CCTSegmentor` has them.

    `EncoderDecoder` has them as `auxiliary_head`, one by itself, several by their number; `heads`
    are the segmentor's `supervised_heads`. What has the segmentor's own names stays.
    """
    for index, head in enumerate(heads):
        for name in head.state_dict():
            own = f'{prefix}supervised_heads.{index}.{name}'
            alone = [f'{prefix}auxiliary_head.{name}'] if len(heads) == 1 else []
            for given in (f'{prefix}auxiliary_head.{index}.{name}', *alone):
                if own not in state and given in state:
                    state[own] = state.pop(given)
