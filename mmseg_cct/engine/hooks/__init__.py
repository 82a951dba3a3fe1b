from .durable_checkpoint_hook import DurableCheckpointHook
from .fixed_teacher_hook import FixedTeacherHook
from .log_hooks import FindingsHook, MainProcessLoggerHook, ProgressBarHook
from .non_finite_loss_hook import NonFiniteLossHook
from .ramp_up_hook import RampUpHook
from .resume_hook import IterationSeedHook, ResumeHook
from .speed_hooks import ChannelsLastHook, CompileEncoderHook, FreezeHook, FuseConvBNHook
from .teacher_hook import SyncStatisticsHook, TeacherHook
