"""`EncoderDecoder` with any main decoder of MMSegmentation, and what learns from a teacher."""

from collections.abc import Sequence
from typing import Any

from mmengine.model import BaseModel
from mmseg.models import EncoderDecoder
from torch import Tensor, nn

from mmseg_cct.errors import UserError
from mmseg_cct.models.heads.main_logits import CascadeHead, fused_layer, main_logits


class AnyDecoderSegmentor(EncoderDecoder):
    """`EncoderDecoder` that knows the main prediction of its decoder as logits.

    A list of heads as `decode_head` is a cascade, as in `CascadeEncoderDecoder`.

    Args:
        *args: Arguments of `EncoderDecoder`.
        num_stages: The number of heads of a cascade, as `CascadeEncoderDecoder` has it.
        **kwargs: Arguments of `EncoderDecoder`.
    """

    def __init__(self, *args: Any, num_stages: int | None = None, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)

    @property
    def networks(self) -> list[nn.Module]:
        """Networks with an encoder of their own, which hooks lay out in memory and compile.

        A segmentor with a second one lists it, too.
        """
        return [self]

    @property
    def fused_layer(self) -> str | None:
        """Layer of the main decoder whose input are the features that it has fused, if any."""
        return fused_layer(self.decode_head)

    def main_logits(self, features: Sequence[Tensor]) -> Tensor:
        """Predicts seg_logits `(N, C, ·, ·)` by the main decoder, in its mode, from the neck's
        outputs."""
        return main_logits(self.decode_head, features, self.test_cfg)

    def _forward(self, inputs: Tensor, data_samples: Any = None) -> Tensor:
        return self.main_logits(self.extract_feat(inputs))

    def _init_decode_head(self, decode_head: dict | list) -> None:
        if isinstance(decode_head, (list, tuple)):
            decode_head = dict(type=CascadeHead, heads=decode_head)
        super()._init_decode_head(decode_head)
        if self.decode_head.out_channels == 1:  # its softmax is 1 everywhere
            raise UserError('model.decode_head.out_channels=1', '', 'one output for each class, 2')


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


def require_pairs(inputs: dict[str, Tensor] | Tensor, segmentor: str) -> None:
    """Rejects a plain batch of labelled images, without branches."""
    if not isinstance(inputs, dict):
        problem = f'{segmentor} trains on pairs of a labelled and an unlabelled image'
        raise UserError('train_dataloader.dataset', problem, 'a SemiSegDataset with both')
