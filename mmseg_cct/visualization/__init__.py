"""Pictures of predictions."""

from .multi_domain_visualizer import DomainVisualizer

__all__ = ['DomainVisualizer']
