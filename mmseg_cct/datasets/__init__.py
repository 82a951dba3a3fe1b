"""Data sets, samplers and transforms of labelled and unlabelled images.

They need MMSegmentation, whose import takes seconds, so they are imported once one is asked for:
the modules that read files serve tools that need no network.
"""

# ruff: noqa: F405
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .components import *

__all__ = [
    'CamVidDataset',
    'DrawShapesScene',
    'FolderDataset',
    'LoadChannels',
    'LoadPseudoLabels',
    'MarkValidPixels',
    'MultiDomainConcatDataset',
    'MultiDomainDataset',
    'MultiDomainDraw',
    'MultiDomainSampler',
    'PackPseudoLabels',
    'PackUnlabeledInputs',
    'PairDraw',
    'PairSampler',
    'SUNRGBDDataset',
    'ScoreAtSize',
    'SemiSegDataset',
    'SetDomain',
    'ShapesDataset',
    'StrongViews',
]


def __getattr__(name: str) -> Any:
    """Imports the components when one is asked for."""
    if name not in __all__:
        raise AttributeError(f'module {__name__!r} has no attribute {name!r}')
    from . import components

    return getattr(components, name)
