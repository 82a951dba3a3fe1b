from .channels_last_hook import ChannelsLastHook
from .compile_hook import CompileHook
from .durable_checkpoint_hook import DurableCheckpointHook
from .findings_hook import FindingsHook
from .freeze_hook import FreezeHook
from .fuse_conv_bn_hook import FuseConvBNHook
from .iteration_seed_hook import IterationSeedHook
from .log_hooks import MainProcessLoggerHook, SteadyTimerHook, VoidAccuracyHook
from .non_finite_loss_hook import NonFiniteLossHook
from .progress_bar_hook import ProgressBarHook
from .ramp_up_hook import RampUpHook
from .resume_hook import ResumeHook
from .sync_statistics_hook import SyncStatisticsHook
from .teacher_hook import TeacherHook
from .unlabeled_visualization_hook import UnlabeledVisualizationHook

__all__ = [
    'ChannelsLastHook',
    'CompileHook',
    'DurableCheckpointHook',
    'FindingsHook',
    'FreezeHook',
    'FuseConvBNHook',
    'IterationSeedHook',
    'MainProcessLoggerHook',
    'NonFiniteLossHook',
    'ProgressBarHook',
    'RampUpHook',
    'ResumeHook',
    'SteadyTimerHook',
    'SyncStatisticsHook',
    'TeacherHook',
    'UnlabeledVisualizationHook',
    'VoidAccuracyHook',
]
