"""Visualizers of predictions and curves."""

from .grouped_tensorboard_backend import GroupedTensorboardVisBackend
from .multi_domain_visualizer import MultiDomainVisualizer

__all__ = ['GroupedTensorboardVisBackend', 'MultiDomainVisualizer']
