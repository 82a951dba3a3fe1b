from .cpu_amp_optim_wrapper import CPUAmpOptimWrapper
from .merged_optim_wrapper_constructor import MergedOptimWrapperConstructor

__all__ = ['CPUAmpOptimWrapper', 'MergedOptimWrapperConstructor']
