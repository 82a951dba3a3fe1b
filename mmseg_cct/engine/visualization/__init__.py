"""Visualizers of predictions and curves."""

from .visualizers import GroupedTensorboardVisBackend, MultiDomainVisualizer

__all__ = [
    'GroupedTensorboardVisBackend',
    'MultiDomainVisualizer',
]
