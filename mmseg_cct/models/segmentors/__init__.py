from .cct import CCTSegmentor
from .input_vat import InputVATSegmentor
from .mean_teacher import MeanTeacherSegmentor
from .multi_domain_cct import MultiDomainCCTSegmentor

__all__ = ['CCTSegmentor', 'InputVATSegmentor', 'MeanTeacherSegmentor', 'MultiDomainCCTSegmentor']
