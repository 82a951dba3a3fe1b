"""Scales a dict of losses."""

from torch import Tensor


def scaled(losses: dict[str, Tensor], weight: float) -> dict[str, Tensor]:
    """Scales the entries that mmengine sums: keys containing 'loss'."""
    return {name: value * weight if 'loss' in name else value for name, value in losses.items()}
