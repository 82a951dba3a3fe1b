"""Transforms of MMSeg's pipelines."""

from .load_channels import IgnoreNodata, LoadChannels
from .pseudo_labels import LoadPseudoLabels, PackPseudoLabels
from .score_at_size import ScoreAtSize
from .set_domain import SetDomain
from .strong_views import StrongViews
from .valid_pixels import MarkValidPixels, PackUnlabeledInputs

__all__ = [
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
