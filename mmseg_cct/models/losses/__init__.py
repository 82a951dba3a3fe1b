from .confident_ce import ConfidentCrossEntropy, ConfidentMSE, PseudoTargets
from .consistency import ConsistencyLoss, JSConsistency, KLConsistency, MSEConsistency
from .pairwise import PairwiseVariance
from .pixel_term import PixelTargets, PixelTerm
from .supervised import BatchLovasz, BootstrappedCrossEntropy, MeanCrossEntropy
from .weak_ce import WeakCrossEntropy

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
