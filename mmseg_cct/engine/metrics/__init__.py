"""IoU metrics by class and for several domains."""

from .class_iou import ClassIoUMetric
from .multi_domain_iou import MultiDomainIoUMetric

__all__ = ['ClassIoUMetric', 'MultiDomainIoUMetric']
