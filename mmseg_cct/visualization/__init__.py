"""Visualizers of predictions."""

from .multi_domain_visualizer import MultiDomainVisualizer

__all__ = ['MultiDomainVisualizer']
