"""Preprocessing of batches by branch and by domain."""

from .branch_preprocessor import BranchPreprocessor
from .multi_domain_preprocessor import MultiDomainPreprocessor, domain_of

__all__ = ['BranchPreprocessor', 'MultiDomainPreprocessor']
