"""Data sets, samplers and transforms of labelled and unlabelled images."""

from .camvid import CamVidDataset
from .folder import FolderDataset
from .multi_domain import MultiDomainConcatDataset, MultiDomainDataset
from .samplers import MultiDomainDraw, MultiDomainSampler, PairDraw, PairSampler
from .semi_supervised import SemiSegDataset
from .shapes import DrawShapesScene, ShapesDataset
from .sun_rgbd import SUNRGBDDataset
from .transforms import (
    LoadChannels,
    LoadPseudoLabels,
    MarkValidPixels,
    PackPseudoLabels,
    PackUnlabeledInputs,
    ScoreAtSize,
    SetDomain,
    StrongViews,
)

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
