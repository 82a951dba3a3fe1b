from .cct import CCTSegmentor
from .cct_plus import CCTPlusSegmentor
from .input_vat import InputVATSegmentor
from .mean_teacher import MeanTeacherSegmentor
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
