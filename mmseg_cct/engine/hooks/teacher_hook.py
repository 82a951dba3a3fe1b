"""The average of the student's weights over time, as a teacher."""

from typing import Any

import torch
from mmengine.dist import all_reduce_params, is_distributed
from mmengine.hooks import EMAHook
from mmengine.model import BaseModel, MomentumAnnealingEMA
from mmengine.registry import HOOKS
from mmengine.runner import Runner
from torch import nn
from torch.nn.modules.batchnorm import _BatchNorm
from torch.optim.swa_utils import get_ema_multi_avg_fn

from mmseg_cct.engine.optimizers import optim_wrappers
from mmseg_cct.utils.log import warn
from mmseg_cct.utils.ranges import in_unit, one_of, ranges


@HOOKS.register_module()
class TeacherHook(EMAHook):
    """Averages the student's weights after every optimizer step, and gives the model this teacher.

    θ' ← α_t θ' + (1 - α_t) θ with α_t = min(1 - 1/(t + 1), α), which is a plain mean at first, as
    in Mean Teacher (https://arxiv.org/abs/1703.01780). BatchNorm's running statistics are averaged
    likewise, and also over the ranks of a distributed training. A checkpoint's `state_dict` is the
    network that is evaluated; `--resume` also reads the other one: the teacher from
    `teacher_state_dict`, or the student from `ema_state_dict`, where `EMAHook` keeps it::

        dict(type='TeacherHook', decay=0.99)  # a teacher for the targets alone
        dict(type='TeacherHook', evaluate='teacher', batch_statistics=True)  # Mean Teacher

    Args:
        decay: α.
        evaluate: The network that is validated, tested and saved as `state_dict`: 'student' or
            'teacher'.
        batch_statistics: Whether the teacher's BatchNorm normalises by the batch, as the student's
            does, instead of the averaged running statistics. The two then disagree even with
            equal weights, and the student learns that difference.
    """

    @ranges(decay=in_unit, evaluate=one_of(('student', 'teacher')))
    def __init__(
        self, decay: float = 0.999, evaluate: str = 'student', batch_statistics: bool = False
    ) -> None:
        # its momentum is max(1 - α, gamma / (gamma + t)); when resuming other weights, the teacher
        # becomes a copy of the student
        super().__init__(MultiTensorEMA, strict_load=False, momentum=1 - decay, gamma=1)
        self.evaluate = evaluate
        self.batch_statistics = batch_statistics

    def before_train(self, runner: Runner) -> None:
        """Gives the model, which must take one, its teacher: at first a copy of the student."""
        super().before_train(runner)
        # The targets come from it in eval mode, whatever the student's mode.
        teacher = self.ema_model.module
        if self.ema_model.steps == 0:
            # it was copied before the runner initialised the weights
            teacher.load_state_dict(self.src_model.state_dict())
        teacher.eval()
        if self.batch_statistics:
            use_batch_statistics(teacher)
        self.src_model.set_teacher(teacher)

    def after_train_iter(self, runner: Runner, *args: Any, **kwargs: Any) -> None:
        """Averages, also over the ranks: without SyncBN their running statistics differ.

        Iterations whose gradients only accumulate leave the teacher alone: its decay is per step.
        """
        if not any(wrapper.should_update() for wrapper in optim_wrappers(runner)):
            return
        super().after_train_iter(runner, *args, **kwargs)
        if is_distributed():
            buffers = self.ema_model.module.buffers()
            all_reduce_params([b for b in buffers if b.is_floating_point()], op='mean')

    def before_save_checkpoint(self, runner: Runner, checkpoint: dict[str, Any]) -> None:
        """Adds the other network, and records in the meta data which one `state_dict` is."""
        if self.evaluate == 'teacher':
            super().before_save_checkpoint(runner, checkpoint)
        else:
            checkpoint['teacher_state_dict'] = self.ema_model.state_dict()
        checkpoint['meta']['network'] = self.evaluate

    def after_load_checkpoint(self, runner: Runner, checkpoint: dict[str, Any]) -> None:
        """Restores the teacher of a resumed training; if missing, it starts as the student."""
        if self.evaluate == 'teacher':
            super().after_load_checkpoint(runner, checkpoint)
        elif runner._resume and 'teacher_state_dict' in checkpoint:
            self.ema_model.load_state_dict(checkpoint['teacher_state_dict'])
        elif runner._resume:
            warn('--resume: no teacher_state_dict in it; the teacher starts as the student')

    def _swap_ema_parameters(self) -> None:
        """Lets the teacher replace the student during evaluation, if it is to be evaluated."""
        if self.evaluate == 'teacher':
            super()._swap_ema_parameters()


class MultiTensorEMA(MomentumAnnealingEMA):
    """`MomentumAnnealingEMA` that updates all averages in a few calls instead of one per tensor.

    After every step the averages equal those of mmengine's class; the buffers in a checkpoint are
    always averaged too. The averaged model may change its device or memory layout until the first
    update. The model's share in an average is `momentum` or more, and after t updates at least
    gamma / (gamma + t).
    """

    def __init__(self, model: nn.Module, momentum: float = 0.0002, gamma: int = 100) -> None:
        # mmengine warns of more than 0.5, which a target from the step before needs.
        super().__init__(model, min(momentum, 0.5), gamma, update_buffers=True)
        self.momentum = momentum
        self._pairs: list[tuple[Any, Any]] = []

    @torch.no_grad()
    def update_parameters(self, model: nn.Module) -> None:
        """Updates the average with the model's weights and buffers."""
        # two state dicts in every step would take the host longer than the averaging
        if not self._pairs:
            averages, values = self.module.state_dict(), model.state_dict()
            self._pairs = [(average, values[name]) for name, average in averages.items()]
        steps = int(self.steps)
        if steps == 0:
            for average, value in self._pairs:
                average.copy_(value)
        else:
            floats = [(a, value) for a, value in self._pairs if a.is_floating_point()]
            momentum = max(self.momentum, self.gamma / (self.gamma + steps))
            averages, values = zip(*((a, value.to(a.device)) for a, value in floats))
            get_ema_multi_avg_fn(1 - momentum)(averages, values, steps)
        self.steps += 1


def use_batch_statistics(teacher: BaseModel) -> None:
    """Lets BatchNorm normalise by the batch, in a teacher that is otherwise in eval mode.

    Its own predictions do not change its running statistics.
    """
    for module in teacher.modules():
        if isinstance(module, _BatchNorm):
            module.train()
            module.track_running_stats = False  # the hook averages those statistics
