"""Thresholds on the confidence of pseudo labels, fixed or learned from the predictions."""

from collections.abc import Sequence

import torch
from mmengine.dist import all_reduce
from mmseg.registry import MODELS
from torch import Tensor, nn

from mmseg_cct.errors import UserError
from mmseg_cct.utils.ranges import in_unit, ranges


@MODELS.register_module()
class FixedThreshold(nn.Module):
    """The same threshold τ throughout.

    Args:
        value: τ in [0, 1]; with 0 every pixel counts.
    """

    @ranges(value=in_unit)
    def __init__(self, value: float = 0.95) -> None:
        super().__init__()
        self.value = value

    def forward(self, confidence: Tensor, labels: Tensor, valid: Tensor) -> float:
        """Returns τ; arguments as in `AdaptiveThreshold`."""
        return self.value


@MODELS.register_module()
class ClassThreshold(nn.Module):
    """A threshold for each predicted class, so that easy classes do not decide for rare ones.

    `tools/analyze_calibration.py --precision` finds them on labelled images that were never
    trained on (as in CW-BASS, https://arxiv.org/abs/2502.15152), and writes a method with them.

    Args:
        values: τ in [0, 1] of each class, in the order of the ids; None for a class whose pixels
            never count.

    Raises:
        UserError: If a value is out of range.
    """

    values: Tensor

    def __init__(self, values: Sequence[float | None]) -> None:
        super().__init__()
        for index, value in enumerate(values):
            if value is not None and not in_unit.allows(value):
                place = f'ClassThreshold.values[{index}]={value!r}'
                raise UserError(f'{place}: expected {in_unit.expected}, or None')
        never = [2.0 if value is None else float(value) for value in values]
        self.register_buffer('values', torch.tensor(never), persistent=False)

    def forward(self, confidence: Tensor, labels: Tensor, valid: Tensor) -> Tensor:
        """Returns τ of each pixel's class, `(N, 1, H, W)`; arguments as in `AdaptiveThreshold`."""
        if int(labels.max()) >= len(self.values):
            raise UserError(
                f'ClassThreshold.values: {len(self.values)} values, and a class of id '
                f'{int(labels.max())}; expected one for each class'
            )
        return self.values[labels]


@MODELS.register_module()
class AdaptiveThreshold(nn.Module):
    """A threshold that follows the predictions (https://arxiv.org/abs/2306.04300).

    In each training iteration τ ← m τ + (1 - m) · mean_c max_i p_i, where the mean is over the
    classes c that are predicted somewhere and the maximum over the valid pixels i of class c. All
    ranks have the same τ, and a checkpoint holds it.

    Args:
        initial: τ at the start, in [0, 1].
        momentum: m in [0, 1].
    """

    value: Tensor

    @ranges(initial=in_unit, momentum=in_unit)
    def __init__(self, initial: float = 0.85, momentum: float = 0.999) -> None:
        super().__init__()
        self.momentum = momentum
        self.register_buffer('value', torch.tensor(float(initial)))

    def forward(self, confidence: Tensor, labels: Tensor, valid: Tensor) -> Tensor:
        """Updates τ in training and returns it, 0-dimensional.

        `confidence` is max_c p in [0, 1], `labels` argmax_c p, and `valid` not 0 where a pixel is
        real; each is `(N, 1, H, W)`.
        """
        if self.training:
            counted = (confidence * (valid > 0)).flatten().float()
            by_class = counted.new_zeros(int(labels.max()) + 1)
            by_class.scatter_reduce_(0, labels.flatten(), counted, 'amax')
            predicted = by_class > 0
            if predicted.any():
                mean = by_class.sum() / predicted.sum()
            else:  # only padding
                mean = self.value.clone()
            all_reduce(mean, 'mean')
            self.value.lerp_(mean, 1 - self.momentum)
        return self.value
