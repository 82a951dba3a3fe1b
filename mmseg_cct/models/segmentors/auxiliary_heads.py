"""Auxiliary decoders and MMSeg's auxiliary heads, which share the setting `auxiliary_head`."""

from collections.abc import MutableMapping
from typing import Any

from mmseg.registry import MODELS
from torch import Tensor, nn

from mmseg_cct.models.heads import PerturbedDecoderBank


def listed(auxiliary_head: Any) -> list[Any]:
    """Lists what the setting `model.auxiliary_head` holds: settings of one head, several or None.

    Args:
        auxiliary_head: The setting.

    Returns:
        The settings of each head; they are the given objects, no copies.
    """
    settings = auxiliary_head if isinstance(auxiliary_head, (list, tuple)) else [auxiliary_head]
    return [each for each in settings if each]


def split_settings(auxiliary_head: Any) -> tuple[list[Any], Any]:
    """Tells apart what the setting `model.auxiliary_head` holds.

    Args:
        auxiliary_head: Settings of one head, a list of them, or None.

    Returns:
        The settings of MMSeg's heads in their order; and those of the auxiliary decoders, None
        where there are none. They are the given objects, no copies.
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
    """Renames the weights of MMSeg's auxiliary heads to where `CCTSegmentor` has these heads.

    `EncoderDecoder` has them as `auxiliary_head`, one by itself, several by their number.

    Args:
        state: Weights by name; changed in place. What has the segmentor's own names stays.
        prefix: Of the segmentor in these names.
        heads: The segmentor's `supervised_heads`.
    """
    for index, head in enumerate(heads):
        for name in head.state_dict():
            own = f'{prefix}supervised_heads.{index}.{name}'
            alone = [f'{prefix}auxiliary_head.{name}'] if len(heads) == 1 else []
            for given in (f'{prefix}auxiliary_head.{index}.{name}', *alone):
                if own not in state and given in state:
                    state[own] = state.pop(given)
