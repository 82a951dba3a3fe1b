from .iteration_seed_hook import IterationSeedHook
from .ramp_up_hook import RampUpHook

__all__ = ['IterationSeedHook', 'RampUpHook']
