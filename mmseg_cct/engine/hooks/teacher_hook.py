"""An EMA teacher for the targets alone."""

import logging
from typing import Any

from mmengine.logging import print_log
from mmengine.registry import HOOKS
from mmengine.runner import Runner

from .mean_teacher_hook import MeanTeacherHook


@HOOKS.register_module()
class TeacherHook(MeanTeacherHook):
    """Gives the model an EMA teacher for its targets; what is evaluated is the student.

    The average is that of `MeanTeacherHook`. A checkpoint's `state_dict` is the student, as in a
    training without the hook; the teacher is its `teacher_state_dict`, which only `--resume` reads.

    Args:
        decay: α.
        batch_statistics: Whether the teacher's BatchNorm normalises by the batch instead of the
            averaged running statistics.
    """

    evaluated = 'student'

    def __init__(self, decay: float = 0.99, batch_statistics: bool = False) -> None:
        super().__init__(decay, batch_statistics)

    def before_save_checkpoint(self, runner: Runner, checkpoint: dict[str, Any]) -> None:
        """Adds the teacher, and names in the meta data the network that `state_dict` is."""
        checkpoint['teacher_state_dict'] = self.ema_model.state_dict()
        checkpoint['meta']['network'] = self.evaluated

    def after_load_checkpoint(self, runner: Runner, checkpoint: dict[str, Any]) -> None:
        """Restores the teacher of a resumed training; without one it starts as the student."""
        if not runner._resume:
            return
        if 'teacher_state_dict' in checkpoint:
            self.ema_model.load_state_dict(checkpoint['teacher_state_dict'])
        else:
            print_log(
                '--resume: the checkpoint has no teacher_state_dict; the teacher starts as a copy '
                'of the student',
                logger='current',
                level=logging.WARNING,
            )

    def _swap_ema_parameters(self) -> None:
        """Leaves the student in place: `EMAHook` calls this around validation and testing."""
