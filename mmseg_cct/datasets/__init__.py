"""Data sets, the pairing of labelled with unlabelled images, and split lists."""

from mmseg_cct.datasets.camvid import CamVidDataset
from mmseg_cct.datasets.folder import FolderDataset
from mmseg_cct.datasets.multi_domain import DomainConcatDataset, MultiDomainDataset, SetDomain
from mmseg_cct.datasets.pseudo_labels import LoadPseudoLabels, PackPseudoLabels
from mmseg_cct.datasets.samplers import DomainDraw, DomainSampler, PairDraw, PairSampler
from mmseg_cct.datasets.semi_supervised import SemiSegDataset
from mmseg_cct.datasets.shapes import DrawShapesScene, ShapesDataset
from mmseg_cct.datasets.sun_rgbd import SUNRGBDDataset

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
