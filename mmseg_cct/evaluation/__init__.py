"""Evaluation and visualisation of several domains."""

from .domain_visualizer import DomainVisualizer
from .multi_domain_iou import MultiDomainIoUMetric

__all__ = ['DomainVisualizer', 'MultiDomainIoUMetric']
