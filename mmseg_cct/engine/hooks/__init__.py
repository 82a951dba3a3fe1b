from .channels_last_hook import ChannelsLastHook
from .compile_encoder_hook import CompileEncoderHook
from .durable_checkpoint_hook import DurableCheckpointHook
from .findings_hook import FindingsHook
from .fixed_teacher_hook import FixedTeacherHook
from .freeze_hook import FreezeHook
from .fuse_conv_bn_hook import FuseConvBNHook
from .iteration_seed_hook import IterationSeedHook
from .logger_hook import MainProcessLoggerHook
from .non_finite_loss_hook import NonFiniteLossHook
from .progress_bar_hook import ProgressBarHook
from .ramp_up_hook import RampUpHook
from .resume_hook import ResumeHook
from .sync_statistics_hook import SyncStatisticsHook
from .teacher_hook import TeacherHook
from .weak_masks_hook import WeakMasksHook

__all__ = [
    'ChannelsLastHook',
    'CompileEncoderHook',
    'DurableCheckpointHook',
    'FindingsHook',
    'FixedTeacherHook',
    'FreezeHook',
    'FuseConvBNHook',
    'IterationSeedHook',
    'MainProcessLoggerHook',
    'NonFiniteLossHook',
    'ProgressBarHook',
    'RampUpHook',
    'ResumeHook',
    'SyncStatisticsHook',
    'TeacherHook',
    'WeakMasksHook',
]
