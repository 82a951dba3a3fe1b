"""What the methods share whose segmentors learn from strong views of the unlabelled images."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from mmengine.structures import PixelData
from mmseg.models.utils import resize
from mmseg.registry import MODELS
from mmseg.structures import SegDataSample
from torch import Tensor, cat

from mmseg_cct.errors import UserError
from mmseg_cct.models.layers.cutmix import paste
from mmseg_cct.models.layers.sample_fields import stack_field

from .cct import CCTSegmentor


@dataclass
class WeakViews:
    """What is predicted on the weak views of a batch: the target of its strong views."""

    features: Sequence[Tensor]  # the student's neck's outputs; empty if it need not see the views
    seg_logits: Tensor  # ŷ, (N, C, H, W), a constant
    valid: Tensor | None  # the real pixels, (N, 1, H, W) bool; None if there is no padding
    samples: Sequence[SegDataSample]

    def mix(self, boxes: Tensor | None) -> tuple[Tensor, Sequence[SegDataSample]]:
        """Mixes ŷ and the samples' real pixels and pseudo labels as a strong view is mixed.

        `boxes` are `(N, 1, H, W)` bool, or None if the view is not mixed.
        """
        if boxes is None:
            return self.seg_logits, self.samples
        size = self.seg_logits.shape[-2:]
        mixed = [SegDataSample(metainfo=sample.metainfo) for sample in self.samples]
        for name in ('valid_mask', 'pseudo_sem_seg'):
            values = stack_field(self.samples, name, size)
            for sample, value in zip(mixed, () if values is None else paste(values, boxes)):
                sample.set_field(PixelData(data=value), name)
        return paste(self.seg_logits, boxes), mixed


class StrongViewSegmentor(CCTSegmentor):
    """`CCTSegmentor` that sees strong views of the unlabelled images; a method adds its `loss`.

    Images `(N, 3, H, W)` are under 'labeled', 'unlabeled', which are the weak views, and
    'unlabeled_strong_0', ... The data set has to make the views::

        train_dataloader = dict(dataset=dict(strong_views=dict(type='StrongViews', num_views=1)))

    Args:
        cutmix: Config of a `CutMix`, drawn for every view; None leaves images as they are.
        **kwargs: Arguments of `CCTSegmentor`.
    """

    # Number of strong views of an image; None for any.
    num_views: int | None = None

    def __init__(self, cutmix: dict | None = None, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.cutmix = MODELS.build(cutmix) if cutmix else None

    def labeled_loss(
        self, inputs: dict[str, Tensor], data_samples: dict[str, list[SegDataSample]]
    ) -> dict[str, Tensor]:
        """Computes L_s of the labelled images, with which every method begins."""
        self.require_training_parts(inputs)
        features = self.extract_feat(inputs['labeled'])
        return self.supervised_loss(features, data_samples['labeled'])

    def predict_weak(
        self,
        inputs: dict[str, Tensor],
        data_samples: dict[str, list[SegDataSample]],
        learns: bool = False,
    ) -> WeakViews:
        """Predicts ŷ of the weak views; if the student `learns` from them, z has a gradient."""
        images, features = inputs['unlabeled'], ()
        # a teacher predicts from the images: then the student may leave them out
        if learns or self.teacher is None:
            with torch.set_grad_enabled(learns):
                features = self.extract_feat(images)
        # at the size of the images, as CutMix's boxes are in pixels
        size = (images.shape[-2], images.shape[-1])
        target = self.resized(self.predict_target(images, features), size)
        samples = data_samples['unlabeled']
        return WeakViews(features, target, stack_field(samples, 'valid_mask', size), samples)

    def mix_strong(self, inputs: dict[str, Tensor]) -> tuple[list[Tensor], list[Tensor | None]]:
        """Mixes each strong view by boxes of its own.

        Returns the views `(N, 3, H, W)` and their boxes, `(N, 1, H, W)` bool or None for none.
        """
        names = sorted(name for name in inputs if name.startswith('unlabeled_strong_'))
        if not names or self.num_views not in (None, len(names)):
            key = 'train_dataloader.dataset.unlabeled.pipeline'
            expected = f'StrongViews(num_views={self.num_views or 1}) at its end'
            needed = f'{expected}, which {type(self).__name__} needs'
            raise UserError(key, f'{len(names)} strong views', needed)
        boxes = [self.cutmix(inputs[name]) if self.cutmix else None for name in names]
        return [paste(inputs[name], mask) for name, mask in zip(names, boxes)], boxes

    def encode_strong(self, views: Sequence[Tensor]) -> list[Sequence[Tensor]]:
        """Encodes all strong views as one batch into the neck's outputs for each."""
        # one batch, as in UniMatch's code: BatchNorm normalises all views alike
        maps = self.extract_feat(cat(list(views)))
        return list(zip(*(_split(z, len(views)) for z in maps)))

    def resized(self, seg_logits: Tensor, size: tuple[int, int]) -> Tensor:
        """Resizes seg_logits `(N, C, ·, ·)` to `size`."""
        if seg_logits.shape[-2:] == size:
            return seg_logits
        return resize(seg_logits, size, mode='bilinear', align_corners=self.align_corners)


def _split(z: Tensor | Sequence[Tensor], num_views: int) -> Sequence[Any]:
    """Splits a map by view, or MMSeg's pair of a map and a class token, which DPT takes."""
    if isinstance(z, Tensor):
        return z.chunk(num_views)
    return [*zip(*(_split(part, num_views) for part in z))]
