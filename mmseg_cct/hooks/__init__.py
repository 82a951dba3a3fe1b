from .compile_hook import CompileHook
from .durable_checkpoint_hook import DurableCheckpointHook
from .iteration_seed_hook import IterationSeedHook
from .non_finite_loss_hook import NonFiniteLossHook
from .preflight_hook import PreflightHook
from .ramp_up_hook import RampUpHook
from .resume_hook import ResumeHook

__all__ = [
    'CompileHook', 'DurableCheckpointHook', 'IterationSeedHook', 'NonFiniteLossHook',
    'PreflightHook', 'RampUpHook', 'ResumeHook'
]
