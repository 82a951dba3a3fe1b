"""Visualizers of predictions and curves."""

from .backends import GroupedTensorboardVisBackend
from .multi_domain_visualizer import MultiDomainVisualizer

__all__ = ['GroupedTensorboardVisBackend', 'MultiDomainVisualizer']
