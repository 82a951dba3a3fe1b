"""The main decoder: 1×1 and sub-pixel convolutions up to the image's resolution."""

import logging
from functools import cache
from typing import Any

from mmengine.logging import print_log
from mmseg.models.decode_heads.decode_head import BaseDecodeHead
from mmseg.registry import MODELS
from mmseg.utils import SampleList
from torch import Tensor, nn

from mmseg_cct.errors import UserError
from mmseg_cct.models.layers.subpixel import icnr_, num_levels
from mmseg_cct.models.losses import BootstrappedCrossEntropy


@cache
def _warn_of_resizing(predicted: tuple[int, int], expected: tuple[int, int], stride: int) -> None:
    """Says, once for each size, that pixels of the prediction are not those of the input."""
    if predicted != expected:
        print_log(
            f'model.decode_head: predictions of {predicted[0]}×{predicted[1]} are resized to their '
            f'inputs of {expected[0]}×{expected[1]}; expected inputs (data_preprocessor.size) '
            f'whose sides are multiples of the stride, {stride}',
            logger='current',
            level=logging.WARNING,
        )


class SubPixelConv(nn.Sequential):
    """1×1 convolution `C → 4C`, ReLU, PixelShuffle(2), initialised by ICNR.

    Args:
        num_classes: C.
        activation: Whether the ReLU is there.
        kernel_init: See `icnr_`.
    """

    def __init__(self, num_classes: int, activation: bool, kernel_init: str) -> None:
        conv = nn.Conv2d(num_classes, 4 * num_classes, kernel_size=1)
        icnr_(conv.weight, conv.bias, kernel_init)
        super().__init__(conv, *[nn.ReLU(inplace=True)] * activation, nn.PixelShuffle(2))


@MODELS.register_module()
class PixelShuffleHead(BaseDecodeHead):
    """The paper's decoder g: each feature position is mapped on its own to its s×s pixels.

    Args:
        in_channels: D, the channels of z.
        num_classes: C.
        stride: s, the output stride of z; a power of two.
        final_activation: Whether the last sub-pixel convolution ends in a ReLU, as in the public
            code. It makes logits non-negative and a class whose channel dies gets no gradient
            again, so it is off unless a converted checkpoint needs it.
        kernel_init: What the sub-pixel convolutions start from: `'kaiming'`, as in the paper, or
            `'identity'`, with which each class starts from its own score. See `icnr_`.
        **kwargs: Arguments of `BaseDecodeHead`, such as `loss_decode` and `ignore_index`.
    """

    def __init__(
        self,
        in_channels: int,
        num_classes: int,
        stride: int = 8,
        final_activation: bool = False,
        kernel_init: str = 'kaiming',
        **kwargs: Any,
    ) -> None:
        kwargs.setdefault('init_cfg', None)  # the layers below bring their own initialisation
        super().__init__(
            in_channels, channels=in_channels, num_classes=num_classes, dropout_ratio=0, **kwargs
        )
        self.stride = stride
        levels = num_levels(stride)
        self.conv_seg = nn.Conv2d(in_channels, self.out_channels, kernel_size=1, bias=False)
        nn.init.kaiming_normal_(self.conv_seg.weight, nonlinearity='relu')
        self.upsample = nn.Sequential(
            *[
                SubPixelConv(self.out_channels, final_activation or level < levels - 1, kernel_init)
                for level in range(levels)
            ]
        )

    def forward(self, inputs: tuple[Tensor, ...]) -> Tensor:
        """Decodes features.

        Args:
            inputs: Features; the one at `in_index` is z `(N, D, h, w)`.

        Returns:
            seg_logits `(N, C, s·h, s·w)`.

        Raises:
            UserError: If z has other channels.
        """
        z = self._transform_inputs(inputs)
        if z.shape[1] != self.in_channels:
            raise UserError(
                f'model.decode_head.in_channels={self.in_channels}: expected '
                f'{z.shape[1]}, the channels of the features before it'
            )
        return self.upsample(self.cls_seg(z))

    def loss_by_feat(self, seg_logits: Tensor, batch_data_samples: SampleList) -> dict[str, Tensor]:
        """Computes the losses and, for the log, the share of pixels that a loss let count.

        Args:
            seg_logits: `(N, C, s·h, s·w)`.
            batch_data_samples: N samples with a ground truth of the size of the input.

        Returns:
            MMSeg's losses and accuracy; with ab-CE also `pixels_abce`, in [0, 1].

        Raises:
            UserError: If the stride does not bring z back to the size of the input.
        """
        expected = batch_data_samples[0].gt_sem_seg.shape
        # A backbone may round the size of its output up or down, by less than a position.
        if any(abs(a - b) >= self.stride for a, b in zip(seg_logits.shape[-2:], expected)):
            h, w = seg_logits.shape[-2:]
            raise UserError(
                f'model.decode_head.stride={self.stride}: predictions of {h}×{w} for inputs of '
                f'{expected[0]}×{expected[1]}; expected the stride of the features, '
                f'{self.stride * expected[0] / h:.0f}'
            )
        _warn_of_resizing(tuple(seg_logits.shape[-2:]), tuple(expected), self.stride)
        losses = super().loss_by_feat(seg_logits, batch_data_samples)
        for loss in self.loss_decode.modules():  # one loss, or a list of them
            if isinstance(loss, BootstrappedCrossEntropy):
                losses['pixels_abce'] = loss.pixels
        return losses
