"""Stacked decoders and their evaluation in chunks, and helpers that the models share."""

from .channel_dropout import ComplementaryDropout
from .cutmix import CutMix

__all__ = ['ComplementaryDropout', 'CutMix']
