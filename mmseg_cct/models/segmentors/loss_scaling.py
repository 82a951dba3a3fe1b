"""Weights for losses by name."""

from torch import Tensor


def scaled(losses: dict[str, Tensor], weight: float) -> dict[str, Tensor]:
    """Multiplies what is optimised, by mmengine's rule each key with 'loss' in it, by a weight."""
    return {name: value * weight if 'loss' in name else value for name, value in losses.items()}
