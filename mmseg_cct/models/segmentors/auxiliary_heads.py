"""Auxiliary decoders and MMSeg's auxiliary heads, which share the setting `auxiliary_head`."""

from collections.abc import MutableMapping
from typing import Any

from torch import Tensor, nn


def listed(auxiliary_head: Any) -> list[Any]:
    """Lists the heads' configs in `model.auxiliary_head` (one, a list or None), not copied."""
    settings = auxiliary_head if isinstance(auxiliary_head, (list, tuple)) else [auxiliary_head]
    return [each for each in settings if each]


def take_names_of_mmseg(
    state: MutableMapping[str, Tensor], prefix: str, heads: nn.ModuleList
) -> None:
    """Renames the weights of MMSeg's auxiliary heads to `CCTSegmentor`'s names, in place.

    `EncoderDecoder` has a single head under `auxiliary_head.*`, several under `auxiliary_head.0.*`
    and so on; `heads` are the segmentor's `supervised_heads`. Weights that already have the
    segmentor's names stay.
    """
    for index, head in enumerate(heads):
        for name in head.state_dict():
            own = f'{prefix}supervised_heads.{index}.{name}'
            alone = [f'{prefix}auxiliary_head.{name}'] if len(heads) == 1 else []
            for given in (f'{prefix}auxiliary_head.{index}.{name}', *alone):
                if own not in state and given in state:
                    state[own] = state.pop(given)
