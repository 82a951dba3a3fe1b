"""Auxiliary decoders and MMSeg's auxiliary heads, which share the setting `auxiliary_head`."""

from collections.abc import MutableMapping
from typing import Any

from torch import Tensor, nn


def listed(auxiliary_head: Any) -> list[Any]:
    """Lists the settings in `model.auxiliary_head`: one head, several or None; no copies."""
    settings = auxiliary_head if isinstance(auxiliary_head, (list, tuple)) else [auxiliary_head]
    return [each for each in settings if each]


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
