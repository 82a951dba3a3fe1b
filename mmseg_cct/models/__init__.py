"""The components of the method, which a config names."""

from .backbones import *
from .data_preprocessors import *
from .heads import *
from .layers.channel_dropout import ComplementaryDropout
from .layers.cutmix import CutMix
from .losses import *
from .necks import *
from .perturbations import *
from .segmentors import *
