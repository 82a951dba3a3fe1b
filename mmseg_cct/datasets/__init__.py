"""Data sets, samplers and transforms of labelled and unlabelled images."""

from . import samplers, transforms
from .camvid import CamVidDataset
from .folder import FolderDataset
from .multi_domain import MultiDomainConcatDataset, MultiDomainDataset
from .samplers import *
from .semi_supervised import SemiSegDataset
from .shapes import DrawShapesScene, ShapesDataset
from .sun_rgbd import SUNRGBDDataset
from .transforms import *

__all__ = [
    *samplers.__all__,
    *transforms.__all__,
    'CamVidDataset',
    'DrawShapesScene',
    'FolderDataset',
    'MultiDomainConcatDataset',
    'MultiDomainDataset',
    'SUNRGBDDataset',
    'SemiSegDataset',
    'ShapesDataset',
]
