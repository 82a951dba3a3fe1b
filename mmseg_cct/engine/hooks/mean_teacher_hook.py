"""The teacher of Mean Teacher: an exponential moving average of the student."""

from typing import Any

from mmengine.dist import all_reduce_params
from mmengine.hooks import EMAHook
from mmengine.registry import HOOKS
from mmengine.runner import Runner

from mmseg_cct.engine.averaged_model import MultiTensorEMA
from mmseg_cct.errors import UserError
from mmseg_cct.models.segmentors.teacher import use_batch_statistics


@HOOKS.register_module()
class MeanTeacherHook(EMAHook):
    """Averages the student's weights after every iteration, and gives the model this teacher.

    θ' ← α_t θ' + (1 - α_t) θ with α_t = min(1 - 1/(t + 1), α): a plain mean at first. BatchNorm's
    running statistics are averaged likewise, and over the ranks of a distributed training. As
    `EMAHook` does, validation and testing are the teacher's, and a checkpoint holds the teacher as
    its `state_dict` and the student as its `ema_state_dict`, from which a resumed training goes on
    with both.

    Args:
        decay: α.
        batch_statistics: Whether the teacher's BatchNorm normalises by the batch, as the student's
            does, instead of the averaged running statistics. By these the two disagree even with
            equal weights, and the student learns that difference.

    Raises:
        UserError: If α is out of range.
    """

    # The network that is validated, tested and the `state_dict` of a checkpoint.
    evaluated = 'teacher'

    def __init__(self, decay: float = 0.99, batch_statistics: bool = True) -> None:
        if not 0 < decay < 1:
            raise UserError(f'{type(self).__name__}.decay={decay}: expected a number in (0, 1)')
        # its momentum is max(1 - α, gamma / (gamma + t))
        super().__init__(
            MultiTensorEMA,
            # of other weights than a resumed training's the teacher becomes a copy of the student
            strict_load=False,
            momentum=1 - decay,
            gamma=1,
        )
        self.batch_statistics = batch_statistics

    def before_train(self, runner: Runner) -> None:
        """Hands the teacher over; at the first iteration it is the student.

        Raises `UserError` if the model takes no teacher.
        """
        super().before_train(runner)
        if not hasattr(self.src_model, 'set_teacher'):
            raise UserError(
                f'custom_hooks: {type(self).__name__} with a {type(self.src_model).__name__}; '
                'expected a segmentor that takes a teacher, such as CCTSegmentor or '
                'MeanTeacherSegmentor'
            )
        teacher = self.ema_model.module
        if self.ema_model.steps == 0:
            # it was copied before the runner initialised the weights
            teacher.load_state_dict(self.src_model.state_dict())
        teacher.eval()
        if self.batch_statistics:
            use_batch_statistics(teacher)
        self.src_model.set_teacher(teacher)

    def after_train_iter(
        self, runner: Runner, batch_idx: int, data_batch: Any = None, outputs: dict | None = None
    ) -> None:
        """Averages; without SyncBN the running statistics of the ranks differ, so these too."""
        super().after_train_iter(runner, batch_idx, data_batch, outputs)
        all_reduce_params(
            [b for b in self.ema_model.module.buffers() if b.is_floating_point()], op='mean'
        )

    def before_save_checkpoint(self, runner: Runner, checkpoint: dict[str, Any]) -> None:
        """Adds both networks, and names in the meta data the one that `state_dict` is."""
        super().before_save_checkpoint(runner, checkpoint)
        checkpoint['meta']['network'] = self.evaluated
