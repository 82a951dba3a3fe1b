"""`EncoderDecoder` with any main decoder of MMSegmentation."""

from collections.abc import Sequence
from typing import Any

from mmseg.models import EncoderDecoder
from torch import Tensor, nn

from mmseg_cct.models.heads.cascade_head import CascadeHead
from mmseg_cct.models.heads.main_logits import fused_layer, main_logits

from .requirements import require_one_output_per_class


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
        """Predicts seg_logits `(N, C, ·, ·)` of images."""
        return self.main_logits(self.extract_feat(inputs))

    def _init_decode_head(self, decode_head: dict | list) -> None:
        if isinstance(decode_head, (list, tuple)):
            decode_head = dict(type=CascadeHead, heads=decode_head)
        super()._init_decode_head(decode_head)
        require_one_output_per_class(self.decode_head)
