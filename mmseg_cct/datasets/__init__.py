"""Data sets, the pairing of labelled with unlabelled images, and split lists."""

from mmseg_cct.datasets.camvid import CamVidDataset
from mmseg_cct.datasets.folder import FolderDataset
from mmseg_cct.datasets.pseudo_labels import LoadPseudoLabels, PackPseudoLabels
from mmseg_cct.datasets.samplers import PairDraw, PairSampler
from mmseg_cct.datasets.semi_supervised import SemiSegDataset
from mmseg_cct.datasets.shapes import DrawShapesScene, ShapesDataset

__all__ = [
    'CamVidDataset',
    'DrawShapesScene',
    'FolderDataset',
    'LoadPseudoLabels',
    'PackPseudoLabels',
    'PairDraw',
    'PairSampler',
    'SemiSegDataset',
    'ShapesDataset',
]
