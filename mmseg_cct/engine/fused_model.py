"""A model whose BatchNorms are merged into its convolutions, for inference."""

import copy
from collections import OrderedDict
from collections.abc import Callable
from typing import Any

import torch
from mmcv.cnn import fuse_conv_bn
from mmseg.structures import SegDataSample

_SIDE = 512  # of the piece of an image on which the two are compared


def fused_model(model: Any, data: dict[str, Any]) -> Any:
    """Copies `model` with each BatchNorm merged into the convolution before it, channels last.

    This makes inference on a CPU faster. Modules may run in another order than they are listed in,
    or a norm may do more than normalise, so the logits of a piece of an image are compared: the
    result is `model` itself if it cannot be copied, or they differ by 1e-3 of the largest.
    It is in evaluation mode; `data` is a batch for its `test_step`, and gradients are off.
    """
    # The hooks of a training refer to its runner, which cannot be copied; a teacher need not be.
    left_out: dict[int, Any] = {
        id(model._forward_hooks): OrderedDict(),
        id(getattr(model, '_teacher', ())): (),
    }
    try:
        fused = fuse_conv_bn(copy.deepcopy(model, left_out)).to(memory_format=torch.channels_last)
        old, new = (each.test_step(_piece(data))[0].seg_logits.data for each in (model, fused))
    except Exception:  # a module cannot be copied or merged; `model` itself reports other errors
        return model
    return fused if (old - new).abs().max() <= 1e-3 * old.abs().max() else model


def fused_test_step(model: Any) -> Callable[[dict[str, Any]], list[SegDataSample]]:
    """Returns a `test_step` that fuses `model` at its first batch and runs the result."""
    fused = None

    def test_step(data: dict[str, Any]) -> list[SegDataSample]:
        nonlocal fused
        fused = fused or fused_model(model, data)
        return fused.test_step(data)

    return test_step


def _piece(data: dict[str, Any]) -> dict[str, Any]:
    """Cuts the corner of a batch's first image; logits are large, and two models have some."""
    image = data['inputs'][0][..., :_SIDE, :_SIDE]
    size = tuple(image.shape[-2:])
    sizes = dict.fromkeys(('img_shape', 'ori_shape', 'pad_shape'), size)
    known = data['data_samples'][0].metainfo
    meta = {key: value for key, value in known.items() if 'padding' not in key}
    return dict(inputs=[image], data_samples=[SegDataSample(metainfo={**meta, **sizes})])
