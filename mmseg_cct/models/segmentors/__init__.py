from .cct import CCTSegmentor
from .cct_plus import CCTPlusSegmentor
from .cct_strong import CCTStrongSegmentor
from .fixmatch import FixMatchSegmentor
from .input_consistency import InputVATSegmentor, MeanTeacherSegmentor
from .multi_domain_cct import MultiDomainCCTSegmentor
from .self_training import SelfTrainingSegmentor
from .strong_views import StrongViewSegmentor
from .unimatch import UniMatchSegmentor
from .unimatch_v2 import UniMatchV2Segmentor

__all__ = [
    'CCTPlusSegmentor',
    'CCTSegmentor',
    'CCTStrongSegmentor',
    'FixMatchSegmentor',
    'InputVATSegmentor',
    'MeanTeacherSegmentor',
    'MultiDomainCCTSegmentor',
    'SelfTrainingSegmentor',
    'StrongViewSegmentor',
    'UniMatchSegmentor',
    'UniMatchV2Segmentor',
]
