"""Transforms of MMSeg's pipelines."""

from .load_channels import LoadChannels
from .score_at_size import ScoreAtSize
from .set_domain import SetDomain
from .strong_views import StrongViews
from .unlabeled import LoadPseudoLabels, MarkValidPixels, PackPseudoLabels, PackUnlabeledInputs

__all__ = [
    'LoadChannels',
    'LoadPseudoLabels',
    'MarkValidPixels',
    'PackPseudoLabels',
    'PackUnlabeledInputs',
    'ScoreAtSize',
    'SetDomain',
    'StrongViews',
]
