"""Dropout of whole channels of z on the views of an image."""

from collections.abc import Sequence

import torch
from mmseg.registry import MODELS
from torch import Tensor, nn

from mmseg_cct.utils.ranges import in_unit, ranges

from .transfer import to_device


@MODELS.register_module()
class ComplementaryDropout(nn.Module):
    """Gives each of two views one half of the channels (https://arxiv.org/abs/2410.10777).

    Args:
        keep_ratio: Share of the pairs that keep all channels, in [0, 1].
    """

    @ranges(keep_ratio=in_unit)
    def __init__(self, keep_ratio: float = 0.5) -> None:
        super().__init__()
        self.keep_ratio = keep_ratio

    def forward(
        self, first: Sequence[Tensor], second: Sequence[Tensor]
    ) -> tuple[list[Tensor], list[Tensor]]:
        """Masks the channels of both views, 2M and 2(1 - M); every map has its own M.

        The views are the neck's outputs, `(N, D, h, w)` each.
        """
        num_pairs = len(first[0])
        # the same pairs for every map, so that a pair is kept as a whole
        kept = torch.randperm(num_pairs)[: int(num_pairs * self.keep_ratio)]
        masked: tuple[list[Tensor], list[Tensor]] = ([], [])
        for maps in zip(first, second, strict=True):
            # twice the kept half keeps the mean of the features
            drawn = 2.0 * torch.randint(2, (num_pairs, maps[0].shape[1]))
            drawn[kept] = 1
            for views, features, mask in zip(masked, maps, (drawn, 2 - drawn)):
                mask = to_device(mask, features.device).to(features.dtype)
                views.append(features * mask[..., None, None])
        return masked
