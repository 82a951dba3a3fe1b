"""Visualizers of predictions and curves."""

from .visualizers import GroupedTensorboardVisBackend, MultiDomainVisualizer
