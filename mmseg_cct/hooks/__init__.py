from .iteration_seed_hook import IterationSeedHook
from .mean_teacher_hook import MeanTeacherHook
from .ramp_up_hook import RampUpHook
from .unlabeled_visualization_hook import UnlabeledVisualizationHook

__all__ = ['IterationSeedHook', 'MeanTeacherHook', 'RampUpHook', 'UnlabeledVisualizationHook']
