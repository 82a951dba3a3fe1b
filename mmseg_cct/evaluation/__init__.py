"""Metrics of several domains."""

from .multi_domain_iou import MultiDomainIoUMetric

__all__ = ['MultiDomainIoUMetric']
