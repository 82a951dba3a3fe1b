from .agreement import agreement, agreement_term
from .bootstrapped_ce import BootstrappedCrossEntropy, bootstrapped_cross_entropy
from .consistency import (
    ConsistencyLoss,
    JSConsistency,
    KLConsistency,
    MSEConsistency,
    js_distance,
    kl_distance,
    mse_distance,
)
from .pairwise import PairwiseVariance, variance
from .pixel_term import PixelTargets, PixelTerm, stack_valid_masks
from .weak_ce import WeakCrossEntropy, label_cross_entropy

__all__ = [
    'BootstrappedCrossEntropy',
    'ConsistencyLoss',
    'JSConsistency',
    'KLConsistency',
    'MSEConsistency',
    'PairwiseVariance',
    'PixelTargets',
    'PixelTerm',
    'WeakCrossEntropy',
    'agreement',
    'agreement_term',
    'bootstrapped_cross_entropy',
    'js_distance',
    'kl_distance',
    'label_cross_entropy',
    'mse_distance',
    'stack_valid_masks',
    'variance',
]
