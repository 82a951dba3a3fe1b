from .auxiliary import (
    ConsistencyLoss,
    JSConsistency,
    KLConsistency,
    MSEConsistency,
    PairwiseVariance,
    WeakCrossEntropy,
)
from .confident_ce import ConfidentCrossEntropy, ConfidentMSE, PseudoTargets
from .pixel_term import PixelTargets, PixelTerm
from .supervised import BatchLovasz, BootstrappedCrossEntropy, MeanCrossEntropy

__all__ = [
    'BatchLovasz',
    'BootstrappedCrossEntropy',
    'ConfidentCrossEntropy',
    'ConfidentMSE',
    'ConsistencyLoss',
    'JSConsistency',
    'KLConsistency',
    'MSEConsistency',
    'MeanCrossEntropy',
    'PairwiseVariance',
    'PixelTargets',
    'PixelTerm',
    'PseudoTargets',
    'WeakCrossEntropy',
]
