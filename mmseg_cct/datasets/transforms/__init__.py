"""Transforms of MMSeg's pipelines."""

from .draw_shapes_scene import DrawShapesScene
from .load_channels import IgnoreNodata, LoadChannels
from .pseudo_labels import LoadPseudoLabels, PackPseudoLabels
from .score_at_size import ScoreAtSize
from .set_domain import SetDomain
from .strong_views import StrongViews
from .valid_pixels import MarkValidPixels, PackUnlabeledInputs

__all__ = [
    'DrawShapesScene',
    'IgnoreNodata',
    'LoadChannels',
    'LoadPseudoLabels',
    'MarkValidPixels',
    'PackPseudoLabels',
    'PackUnlabeledInputs',
    'ScoreAtSize',
    'SetDomain',
    'StrongViews',
]
