from .cct import CCTSegmentor
from .multi_domain_cct import MultiDomainCCTSegmentor

__all__ = ['CCTSegmentor', 'MultiDomainCCTSegmentor']
