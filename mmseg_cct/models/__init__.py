from .backbones import MultiChannelBackbone, TimmViT
from .data_preprocessors import BranchPreprocessor, MultiDomainPreprocessor
from .heads import DomainDiscriminator, PerturbedDecoderBank, PixelShuffleHead
from .layers.channel_dropout import ComplementaryDropout
from .layers.cutmix import CutMix
from .losses import (
    BatchLovasz,
    BootstrappedCrossEntropy,
    ConfidentCrossEntropy,
    ConfidentMSE,
    JSConsistency,
    KLConsistency,
    MeanCrossEntropy,
    MSEConsistency,
    PairwiseVariance,
    WeakCrossEntropy,
)
from .necks import ConcatNeck, PSPNeck
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
from .segmentors import (
    CCTPlusSegmentor,
    CCTSegmentor,
    InputVATSegmentor,
    MeanTeacherSegmentor,
    MultiDomainCCTSegmentor,
)

__all__ = [
    'BatchLovasz',
    'BootstrappedCrossEntropy',
    'BranchPreprocessor',
    'CCTPlusSegmentor',
    'CCTSegmentor',
    'ComplementaryDropout',
    'ConcatNeck',
    'ConfidentCrossEntropy',
    'ConfidentMSE',
    'ContextMasking',
    'CutMix',
    'DomainDiscriminator',
    'FeatureDrop',
    'FeatureNoise',
    'GuidedCutout',
    'InputVATSegmentor',
    'IntermediateVAT',
    'JSConsistency',
    'KLConsistency',
    'MSEConsistency',
    'MeanCrossEntropy',
    'MeanTeacherSegmentor',
    'MultiChannelBackbone',
    'MultiDomainCCTSegmentor',
    'MultiDomainPreprocessor',
    'ObjectMasking',
    'PSPNeck',
    'PairwiseVariance',
    'Perturbation',
    'PerturbedDecoderBank',
    'PixelShuffleHead',
    'SpatialDropout',
    'SpatialMask',
    'TimmViT',
    'WeakCrossEntropy',
]
