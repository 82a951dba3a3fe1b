"""Joining the decoders of several perturbations in place."""

from typing import Any

import torch
from torch import Tensor


class ScatterInto(torch.autograd.Function):
    """Writes the decoders of one perturbation into the tensor of all decoders.

    Concatenation would hold every part twice; a plain assignment would copy the gradient of all
    decoders for each part.
    """

    @staticmethod
    def forward(ctx: Any, rows: Tensor, part: Tensor, chosen: slice) -> Tensor:
        """Writes `part` to `rows[chosen]`, in the type of `rows`."""
        ctx.chosen, ctx.dtype = chosen, part.dtype
        ctx.mark_dirty(rows)
        rows[chosen] = part
        return rows

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, Tensor, None]:
        """Passes on the gradient of all rows; that of the part is a view of it."""
        return grad, grad[ctx.chosen].to(ctx.dtype), None
