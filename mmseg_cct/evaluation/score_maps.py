"""Scores of a prediction by pixel: the main decoder's confidence, the auxiliary ones' agreement."""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F

from .disagreement import at_input_size, auxiliary_disagreement, batch_of_one


def count_decoders(model: Any) -> int:
    """Returns K, the number of a model's auxiliary decoders, 0 without any."""
    # MMSeg's own auxiliary heads have the same name
    return getattr(getattr(model, 'auxiliary_head', None), 'num_decoders', 0)


@torch.no_grad()
def score_maps(
    model: Any, item: dict[str, Any], classes: Sequence[str], seed: int = 0
) -> tuple[dict[str, Tensor], Tensor]:
    """Scores the main decoder's prediction for an image.

    The model is an `EncoderDecoder` in evaluation mode; `item` is the output of the test pipeline,
    `inputs (3, H, W)` and `data_samples`; `seed` is that of the perturbations. Returns `confidence`
    and, with auxiliary decoders, `agreement`, each `(H, W)` in [0, 1], and the predicted class ids
    `(H, W)`, all on the CPU.
    """
    height, width = item['inputs'].shape[-2:]
    batch = batch_of_one(model, item, classes)
    maps = {}
    if count_decoders(model):
        seg_logits, _, flips, _ = auxiliary_disagreement(model, batch, seed)
        agreement = 1 - flips[:, 0].mean(0, keepdim=True)
        maps['agreement'] = resize_nearest(agreement, batch['inputs'].shape[-2:])
    else:
        seg_logits = model._forward(batch['inputs'])
    probabilities = at_input_size(model, seg_logits, batch)[0].softmax(0)
    maps['confidence'], maps['labels'] = probabilities.max(0)
    # The preprocessor pads right and below.
    maps = {name: values[:height, :width].cpu() for name, values in maps.items()}
    return maps, maps.pop('labels')


def resize_nearest(values: Tensor, size: Sequence[int]) -> Tensor:
    """Resizes values `(1, ·, ·)` by nearest neighbour to `(H, W)` of the same type."""
    resized = F.interpolate(values[None].float(), tuple(size), mode='nearest-exact')
    return resized[0, 0].to(values.dtype)
