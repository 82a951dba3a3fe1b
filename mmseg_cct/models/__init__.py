from .data_preprocessor import BranchPreprocessor
from .decoder_bank import PerturbedDecoderBank
from .heads import PixelShuffleHead
from .losses import (
                     BootstrappedCrossEntropy,
                     JSConsistency,
                     KLConsistency,
                     MSEConsistency,
                     PairwiseVariance,
                     WeakCrossEntropy,
)
from .necks import PSPNeck
from .perturbations import (
                     ContextMasking,
                     FeatureDrop,
                     FeatureNoise,
                     GuidedCutout,
                     IntermediateVAT,
                     ObjectMasking,
                     Perturbation,
                     SpatialDropout,
                     SpatialMask,
)
from .segmentors import CCTSegmentor, InputVATSegmentor, MeanTeacherSegmentor

__all__ = [
    'BootstrappedCrossEntropy', 'BranchPreprocessor', 'CCTSegmentor', 'ContextMasking',
    'FeatureDrop', 'FeatureNoise', 'GuidedCutout', 'InputVATSegmentor', 'IntermediateVAT',
    'JSConsistency', 'KLConsistency', 'MSEConsistency', 'MeanTeacherSegmentor', 'ObjectMasking',
    'PSPNeck', 'PairwiseVariance', 'Perturbation', 'PerturbedDecoderBank', 'PixelShuffleHead',
    'SpatialDropout', 'SpatialMask', 'WeakCrossEntropy'
]
