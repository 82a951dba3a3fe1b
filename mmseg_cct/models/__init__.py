from .backbones import TimmViT
from .data_preprocessors import BranchPreprocessor, MultiDomainPreprocessor
from .heads import DomainDiscriminator, PerturbedDecoderBank, PixelShuffleHead
from .layers.channel_dropout import ComplementaryDropout
from .layers.cutmix import CutMix
from .losses import (
    AdaptiveThreshold,
    AgreementGate,
    BatchLovasz,
    BootstrappedCrossEntropy,
    ConfidentCrossEntropy,
    ConfidentMSE,
    FixedThreshold,
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
    'AdaptiveThreshold',
    'AgreementGate',
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
    'FixedThreshold',
    'GuidedCutout',
    'InputVATSegmentor',
    'IntermediateVAT',
    'JSConsistency',
    'KLConsistency',
    'MSEConsistency',
    'MeanCrossEntropy',
    'MeanTeacherSegmentor',
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
