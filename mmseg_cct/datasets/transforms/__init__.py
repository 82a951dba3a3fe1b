"""Transforms of MMSeg's pipelines."""

from .draw_shapes_scene import DrawShapesScene
from .pseudo_labels import LoadPseudoLabels, PackPseudoLabels
from .set_domain import SetDomain

__all__ = ['DrawShapesScene', 'LoadPseudoLabels', 'PackPseudoLabels', 'SetDomain']
