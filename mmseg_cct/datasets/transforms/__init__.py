"""Transforms of MMSeg's pipelines: pseudo labels and domains."""

from .pseudo_labels import LoadPseudoLabels, PackPseudoLabels
from .set_domain import SetDomain

__all__ = ['LoadPseudoLabels', 'PackPseudoLabels', 'SetDomain']
