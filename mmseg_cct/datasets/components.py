"""What a config can name: importing this module registers it, and loads MMSegmentation."""

# ruff: noqa: F401, F403
from .camvid import CamVidDataset
from .folder import FolderDataset
from .multi_domain import MultiDomainConcatDataset, MultiDomainDataset
from .samplers import *
from .semi_supervised import SemiSegDataset
from .shapes import DrawShapesScene, ShapesDataset
from .sun_rgbd import SUNRGBDDataset
from .transforms import *
