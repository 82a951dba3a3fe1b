from .cct import CCTSegmentor
from .cct_plus import CCTPlusSegmentor
from .input_consistency import InputVATSegmentor, MeanTeacherSegmentor
from .multi_domain_cct import MultiDomainCCTSegmentor
from .self_training import SelfTrainingSegmentor

__all__ = [
    'CCTPlusSegmentor',
    'CCTSegmentor',
    'InputVATSegmentor',
    'MeanTeacherSegmentor',
    'MultiDomainCCTSegmentor',
    'SelfTrainingSegmentor',
]
