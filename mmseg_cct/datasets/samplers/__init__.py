"""Endless samplers whose draws are a pure function of the seed."""

from .endless_sampler import EndlessSampler
from .multi_domain_sampler import MultiDomainDraw, MultiDomainSampler
from .pair_sampler import PairDraw, PairSampler

__all__ = ['MultiDomainDraw', 'MultiDomainSampler', 'PairDraw', 'PairSampler']
