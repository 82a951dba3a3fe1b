"""Main decoder g: a 1×1 convolution and sub-pixel convolutions up to the image's resolution."""

from typing import Any

import torch
from mmseg.models.decode_heads.decode_head import BaseDecodeHead
from mmseg.models.utils import resize
from mmseg.registry import MODELS
from mmseg.utils import SampleList
from torch import Tensor, nn

from mmseg_cct.models.layers.subpixel import icnr_, level_channels, require_stride
from mmseg_cct.models.losses import BootstrappedCrossEntropy


@torch.no_grad()
def pixel_accuracy(seg_logits: Tensor, label: Tensor, ignore_index: int) -> Tensor:
    """Percentage, in [0, 100], of labelled pixels whose class has the highest score.

    seg_logits `(N, C, H, W)`, label `(N, H, W)`; 0-dimensional, 0 without a labelled pixel.

    MMSeg's `accuracy` sorts the classes of every pixel, which takes a twentieth of a small
    network's step on a CPU, and makes the host wait for a GPU to pick the labelled pixels.
    """
    labeled = label != ignore_index
    known = labeled & (label < seg_logits.shape[1])  # a binary head may have a single output
    score = seg_logits.gather(1, label.where(known, 0).unsqueeze(1)).squeeze(1)
    correct = known & (score >= seg_logits.amax(1))
    return 100 * correct.sum() / labeled.sum().clamp(min=1)


@MODELS.register_module()
class PixelShuffleHead(BaseDecodeHead):
    """The paper's decoder g, which maps each feature position on its own to its s×s pixels.

    Args:
        in_channels: D, the channels of z.
        num_classes: C, the number of classes.
        stride: s, the output stride of z; a power of two.
        channels: B, the channels between the projection of z and the last sub-pixel convolution;
            None for C, as in the paper, but at most 64. With few classes, C non-negative numbers
            are too few for a position's s×s pixels: use 32.
        final_activation: Whether the last sub-pixel convolution ends in a ReLU, as in the public
            code. It makes logits non-negative, and a class whose channel dies never gets a
            gradient again; leave it off unless a converted checkpoint needs it.
        kernel_init: Initial kernel of the sub-pixel convolutions: `'identity'` starts each class
            from its own score, `'kaiming'` from a random mix of the classes as in the public code;
            the paper specifies none. See `icnr_`.
        **kwargs: Arguments of `BaseDecodeHead`, such as `loss_decode` and `ignore_index`.

    Raises:
        UserError: If the stride is no power of two, or z does not have that stride.

    Examples:
        >>> head = PixelShuffleHead(in_channels=16, num_classes=5, stride=8)
        >>> z = torch.rand(2, 16, 6, 9)
        >>> tuple(head((z,)).shape)
        (2, 5, 48, 72)
    """

    def __init__(
        self,
        in_channels: int,
        num_classes: int,
        stride: int = 8,
        channels: int | None = None,
        final_activation: bool = False,
        kernel_init: str = 'identity',
        **kwargs: Any,
    ) -> None:
        kwargs.setdefault('init_cfg', None)  # the layers below bring their own initialisation
        super().__init__(
            in_channels, channels=in_channels, num_classes=num_classes, dropout_ratio=0, **kwargs
        )
        self.stride = stride
        widths = level_channels(stride, self.out_channels, channels)
        self.channels = widths[0][0] if widths else self.out_channels
        self.conv_seg = nn.Conv2d(in_channels, self.channels, kernel_size=1, bias=False)
        nn.init.kaiming_normal_(self.conv_seg.weight, nonlinearity='relu')
        # each level doubles the resolution
        levels = []
        for i, (level_in, level_out) in enumerate(widths):
            conv = nn.Conv2d(level_in, 4 * level_out, kernel_size=1)
            icnr_(conv.weight, conv.bias, kernel_init)
            is_last = i == len(widths) - 1
            relu = [] if is_last and not final_activation else [nn.ReLU(inplace=True)]
            levels.append(nn.Sequential(conv, *relu, nn.PixelShuffle(2)))
        self.upsample = nn.Sequential(*levels)

    def forward(self, inputs: tuple[Tensor, ...]) -> Tensor:
        """Predicts seg_logits `(N, C, s·h, s·w)` from the neck's output z `(N, D, h, w)`."""
        z = self._transform_inputs(inputs)
        return self.upsample(self.cls_seg(z))

    def loss_by_feat(self, seg_logits: Tensor, batch_data_samples: SampleList) -> dict[str, Tensor]:
        """Computes MMSeg's losses and accuracy of seg_logits `(N, C, s·h, s·w)`.

        With ab-CE also `pixels_abce`, the share of pixels that it counts, in [0, 1], for the log.
        """
        # as MMSeg's own, but with an accuracy for which the host does not wait
        label = self._stack_batch_gt(batch_data_samples)
        predicted, expected = tuple(seg_logits.shape[2:]), tuple(label.shape[2:])
        require_stride('model.decode_head', self.stride, predicted, expected)
        if predicted != expected:  # the backbone has rounded the size of its output
            options = dict(mode='bilinear', align_corners=self.align_corners)
            seg_logits = resize(seg_logits, expected, **options)
        weight = None if self.sampler is None else self.sampler.sample(seg_logits, label)
        label = label.squeeze(1)
        losses: dict[str, Tensor] = {}
        is_list = isinstance(self.loss_decode, nn.ModuleList)
        for loss in self.loss_decode if is_list else [self.loss_decode]:
            value = loss(seg_logits, label, weight=weight, ignore_index=self.ignore_index)
            losses[loss.loss_name] = losses.get(loss.loss_name, 0) + value
            if isinstance(loss, BootstrappedCrossEntropy):
                share = loss.share_of_hard_pixels(seg_logits, label, self.ignore_index)
                losses['pixels_abce'] = share
        losses['acc_seg'] = pixel_accuracy(seg_logits, label, self.ignore_index)
        return losses
