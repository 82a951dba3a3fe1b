"""The teacher of Mean Teacher: an exponential moving average of the student."""

from mmengine.hooks import EMAHook
from mmengine.registry import HOOKS
from mmengine.runner import Runner

from mmseg_cct.errors import UserError


@HOOKS.register_module()
class MeanTeacherHook(EMAHook):
    """Averages the student's weights after every iteration, and gives the model this teacher.

    θ' ← α_t θ' + (1 - α_t) θ with α_t = min(1 - 1/(t + 1), α): a plain mean at first. BatchNorm's
    running statistics are averaged likewise. As `EMAHook` does, validation and testing are the
    teacher's, and a checkpoint holds the teacher as its `state_dict` and the student as its
    `ema_state_dict`, from which a resumed training goes on with both.

    Args:
        decay: α.

    Raises:
        UserError: If α is out of range.
    """

    def __init__(self, decay: float = 0.99) -> None:
        if not 0 < decay < 1:
            raise UserError(f'MeanTeacherHook.decay={decay}: expected a number in (0, 1)')
        # its momentum is max(1 - α, gamma / (gamma + t))
        super().__init__('MomentumAnnealingEMA', momentum=1 - decay, gamma=1, update_buffers=True)

    def before_train(self, runner: Runner) -> None:
        """Hands the teacher over; at the first iteration it is the student.

        Raises `UserError` if the model takes no teacher.
        """
        super().before_train(runner)
        if not hasattr(self.src_model, 'set_teacher'):
            raise UserError(
                f'custom_hooks: MeanTeacherHook with a {type(self.src_model).__name__}'
                '; expected a MeanTeacherSegmentor'
            )
        teacher = self.ema_model.module
        if self.ema_model.steps == 0:
            # it was copied before the runner initialised the weights
            teacher.load_state_dict(self.src_model.state_dict())
        self.src_model.set_teacher(teacher.eval())
