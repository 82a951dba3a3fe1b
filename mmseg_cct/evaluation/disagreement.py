"""Compares auxiliary decoders with the main one on one image."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import torch
from mmengine.dataset import pseudo_collate
from torch import Tensor
from torch.nn import functional as F


def batch_of_one(model: Any, item: dict[str, Any], classes: Sequence[str]) -> dict[str, Any]:
    """Preprocesses an image and names the classes, which some perturbations need.

    `item` is the output of the test pipeline: `inputs (3, H, W)` and `data_samples`. Returns
    `inputs (1, 3, ·, ·)`, padded at the right and the bottom, and `data_samples`, a list of one.
    """
    batch = model.data_preprocessor(pseudo_collate([item]), training=False)
    for sample in batch['data_samples']:
        sample.set_metainfo(dict(classes=tuple(classes)))
    return batch


def at_input_size(model: Any, seg_logits: Tensor, batch: dict[str, Any]) -> Tensor:
    """Resizes logits to the size of the inputs, as a test does: `(1, C, H, W)` in float32."""
    return F.interpolate(
        seg_logits.float(),
        batch['inputs'].shape[-2:],
        mode='bilinear',
        align_corners=model.align_corners,
    )


class Disagreement(NamedTuple):
    """Distance of auxiliary predictions for an image from the main one.

    Attributes:
        seg_logits: Logits of the main decoder, `(1, C, ·, ·)`.
        distances: Distance of each auxiliary prediction from the main one, `(K, 1, H, W)`.
        flips: Whether an auxiliary decoder chooses another class, `(K, 1, H, W)`.
        z: Features that the auxiliary decoders take, `(1, D, h, w)`.
    """

    seg_logits: Tensor
    distances: Tensor
    flips: Tensor
    z: Tensor


@torch.no_grad()
def auxiliary_disagreement(model: Any, batch: dict[str, Any], seed: int) -> Disagreement:
    """Compares auxiliary predictions with the main one, and leaves torch's generators alone.

    `model` is a `CCTSegmentor` in evaluation mode, `batch` is from `batch_of_one`, and `seed` is
    that of the perturbations.
    """
    features = model.extract_feat(batch['inputs'])
    outputs, seg_logits = model.features_of_bank(features), model.predict_unlabeled(features)
    with torch.random.fork_rng([seg_logits.device] if seg_logits.is_cuda else []):
        torch.manual_seed(seed)
        distances, flips = model.auxiliary_head.disagreement(
            outputs, seg_logits, batch['data_samples']
        )
    return Disagreement(seg_logits, distances, flips, outputs[model.auxiliary_head.in_index])
