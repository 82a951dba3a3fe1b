"""The components of the method, which a config names."""

from . import backbones, data_preprocessors, heads, layers, losses, necks, perturbations, segmentors
from .backbones import *
from .data_preprocessors import *
from .heads import *
from .layers import *
from .losses import *
from .necks import *
from .perturbations import *
from .segmentors import *

__all__ = [
    *backbones.__all__,
    *data_preprocessors.__all__,
    *heads.__all__,
    *layers.__all__,
    *losses.__all__,
    *necks.__all__,
    *perturbations.__all__,
    *segmentors.__all__,
]
