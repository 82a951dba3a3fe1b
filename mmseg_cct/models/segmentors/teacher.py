"""Segmentors whose targets come from an EMA teacher."""

from mmengine.model import BaseModel
from torch import nn
from torch.nn.modules.batchnorm import _BatchNorm


class TakesTeacher:
    """Mixin of the segmentors that get a teacher from a `TeacherHook`."""

    # A tuple registers no submodule: the teacher is not trained, saved or set to train mode.
    _teacher: tuple[BaseModel, ...] = ()

    @property
    def teacher(self) -> BaseModel | None:
        """The network that predicts the targets; None for the segmentor itself."""
        return self._teacher[0] if self._teacher else None

    @property
    def networks(self) -> list[nn.Module]:
        """Networks with an encoder of their own: the segmentor and its teacher."""
        return [self, *self._teacher]  # type: ignore[list-item]

    def set_teacher(self, teacher: BaseModel) -> None:
        """Sets the network that predicts the targets: a copy with other weights, in eval mode."""
        self._teacher = (teacher,)


def use_batch_statistics(teacher: BaseModel) -> None:
    """Lets BatchNorm normalise by the batch, in a teacher that is otherwise in eval mode.

    Its own predictions do not change its running statistics.
    """
    for module in teacher.modules():
        if isinstance(module, _BatchNorm):
            module.train()
            module.track_running_stats = False  # the hook averages those statistics
