from .base import Perturbation, PerturbationContext
from .detected_objects import DetectedObjects
from .feature_noise import FeatureNoise
from .intermediate_vat import IntermediateVAT
from .spatial_dropout import SpatialDropout
from .spatial_masks import ContextMasking, FeatureDrop, GuidedCutout, ObjectMasking, SpatialMask

__all__ = [
    'ContextMasking',
    'DetectedObjects',
    'FeatureDrop',
    'FeatureNoise',
    'GuidedCutout',
    'IntermediateVAT',
    'ObjectMasking',
    'Perturbation',
    'PerturbationContext',
    'SpatialDropout',
    'SpatialMask',
]
