from .base import Perturbation, PerturbationContext, SpatialMask
from .build import build_perturbations
from .feature_drop import FeatureDrop
from .feature_noise import FeatureNoise
from .guided_cutout import GuidedCutout
from .guided_masking import ContextMasking, ObjectMasking
from .intermediate_vat import IntermediateVAT
from .spatial_dropout import SpatialDropout

__all__ = [
    'ContextMasking',
    'FeatureDrop',
    'FeatureNoise',
    'GuidedCutout',
    'IntermediateVAT',
    'ObjectMasking',
    'Perturbation',
    'PerturbationContext',
    'SpatialDropout',
    'SpatialMask',
    'build_perturbations',
]
