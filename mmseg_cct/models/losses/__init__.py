from .batch_lovasz import BatchLovasz
from .bootstrapped_ce import BootstrappedCrossEntropy, bootstrapped_cross_entropy
from .confident_ce import ConfidentCrossEntropy, ConfidentMSE, PseudoTargets
from .consistency import (
    ConsistencyLoss,
    JSConsistency,
    KLConsistency,
    MSEConsistency,
    js_distance,
    kl_distance,
    mse_distance,
)
from .mean_ce import MeanCrossEntropy
from .pairwise import PairwiseVariance, variance
from .pixel_term import PixelTargets, PixelTerm
from .weak_ce import WeakCrossEntropy, label_cross_entropy

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
    'bootstrapped_cross_entropy',
    'js_distance',
    'kl_distance',
    'label_cross_entropy',
    'mse_distance',
    'variance',
]
