"""Data sets, the pairing of labelled with unlabelled images, and split lists."""

from .camvid import CamVidDataset
from .folder import FolderDataset
from .multi_domain import DomainConcatDataset, MultiDomainDataset
from .samplers import DomainDraw, DomainSampler, PairDraw, PairSampler
from .semi_supervised import SemiSegDataset
from .shapes import DrawShapesScene, ShapesDataset
from .sun_rgbd import SUNRGBDDataset
from .transforms import LoadPseudoLabels, PackPseudoLabels, SetDomain

__all__ = [
    'CamVidDataset',
    'DomainConcatDataset',
    'DomainDraw',
    'DomainSampler',
    'DrawShapesScene',
    'FolderDataset',
    'LoadPseudoLabels',
    'MultiDomainDataset',
    'PackPseudoLabels',
    'PairDraw',
    'PairSampler',
    'SUNRGBDDataset',
    'SemiSegDataset',
    'SetDomain',
    'ShapesDataset',
]
