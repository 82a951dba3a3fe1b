"""Normalisation, padding and stacking of labelled and unlabelled branches."""

from collections.abc import Sequence
from typing import Any

import torch
from mmengine.structures import BaseDataElement, PixelData
from mmseg.models import SegDataPreProcessor
from mmseg.registry import MODELS
from mmseg.structures import SegDataSample
from torch import Tensor
from torch.nn.functional import pad

from mmseg_cct.errors import UserError
from mmseg_cct.models.layers.transfer import to_device
from mmseg_cct.stack import take_channel_conversion


@MODELS.register_module()
class BranchPreprocessor(SegDataPreProcessor):
    """`SegDataPreProcessor` applied to each branch of a semi-supervised batch.

    A plain batch is processed as in MMSeg, so validation, testing, inference and the supervised
    baseline use the same object. Pseudo labels are padded like masks. Every sample of a branch
    whose name starts with `unlabeled` gets a `valid_mask`, `(1, H, W)` bool: True at the image's
    own pixels, False at those that this preprocessor or the pipeline (see `MarkValidPixels`) added.

    Args:
        mean: Mean of each channel, in RGB order for three. Any number of channels is possible (see
            `LoadChannels`); mmengine takes one or three.
        std: Standard deviation of each channel, in the order of `mean`.
        **kwargs: Other arguments of `SegDataPreProcessor`.

    Raises:
        UserError: If `mean` and `std` differ in length.
    """

    def __init__(
        self, mean: Sequence[float] | None = None, std: Sequence[float] | None = None, **kwargs: Any
    ) -> None:
        if mean is None or std is None or len(mean) == len(std) in (1, 3):
            super().__init__(mean, std, **kwargs)
        elif len(mean) == len(std):
            super().__init__(**kwargs)
            self._enable_normalize = True
            for name, values in (('mean', mean), ('std', std)):
                self.register_buffer(name, torch.tensor(values).float().view(-1, 1, 1), False)
        else:
            raise UserError(
                'model.data_preprocessor.std', f'{len(std)} values', f'{len(mean)}, as mean has'
            )
        # done here: for each image MMSeg copies the index `[2, 1, 0]` to the GPU, and waits
        self._swaps_channels = take_channel_conversion(self)

    def cast_data(self, data: Any) -> Any:
        """Copies a batch to the device as mmengine does, but the host does not wait for it."""
        if isinstance(data, Tensor):
            return to_device(data, self.device)
        if isinstance(data, BaseDataElement):
            moved = data.new()
            moved.set_data({name: self.cast_data(part) for name, part in data.items()})
            return moved
        return super().cast_data(data)

    def forward(self, data: dict, training: bool = False) -> dict[str, Any]:
        """Prepares a batch for the model.

        `inputs` and `data_samples` are each a list, or a dict of lists by branch name, in which
        None is skipped; in the result `inputs` is one tensor `(N, 3, H, W)`, or one per branch.
        With `training`, images are padded to the training size and batch augmentations run.
        """
        if not isinstance(data['inputs'], dict):
            return self._prepare(data, training)
        branches = {}
        for name, images in data['inputs'].items():
            # with K labelled images per unlabelled one, some have no unlabelled image beside them
            images = [image for image in images if image is not None]
            samples = [sample for sample in data['data_samples'][name] if sample is not None]
            if name.startswith('unlabeled'):
                samples = [_with_valid_mask(*each) for each in zip(images, samples, strict=True)]
            branches[name] = self._prepare(dict(inputs=images, data_samples=samples), training)
        return {
            key: {name: branch[key] for name, branch in branches.items()}
            for key in ('inputs', 'data_samples')
        }

    def _prepare(self, data: dict, training: bool) -> dict[str, Any]:
        """Prepares a plain batch or one branch as MMSeg does."""
        # MMSeg pads to one of the two
        is_padded = (self.size is None) != (self.size_divisor is None)
        if training and is_padded and not self.batch_augments and (fields := _stacked(data)):
            return self._prepare_stacked(fields, data['data_samples'])
        data = self.cast_data(data)
        if self._swaps_channels and len(data['inputs'][0]) == 3:
            data['inputs'] = [image.flip(0) for image in data['inputs']]
        data = super().forward(data, training)
        # MMSeg pads images and masks; pseudo labels and valid pixels are ours to pad
        height, width = data['inputs'].shape[-2:]
        for sample in data['data_samples'] or ():
            for name in {'pseudo_sem_seg', 'valid_mask'} & set(sample.keys()):
                values = sample.get(name).data
                padding = (0, width - values.shape[-1], 0, height - values.shape[-2])
                sample.set_field(PixelData(data=self._pad(name, values, padding)), name)
        return data

    def _prepare_stacked(self, fields: dict[str, Tensor], samples: list[Any]) -> dict[str, Any]:
        """Prepares a batch of one size by a few operations, instead of a few for each image."""
        # stacked on the host: one copy to the device for all images, and one for all masks
        fields = self.cast_data(fields)
        images = fields.pop('inputs')
        if self._swaps_channels and images.shape[1] == 3:
            images = images.flip(1)
        images = images.float()
        if self._enable_normalize:
            images = (images - self.mean) / self.std
        own = images.shape[-2:]
        if self.size is None:
            size = [-(-side // self.size_divisor) * self.size_divisor for side in own]
        else:
            size = [max(*sides) for sides in zip(self.size, own, strict=True)]
        padding = (0, size[1] - own[1], 0, size[0] - own[0])
        fields = {name: self._pad(name, values, padding) for name, values in fields.items()}

        # what MMSeg's `stack_batch` records of each image
        has_mask = any(name.startswith('gt_') for name in fields)
        record = dict(img_shape=own, pad_shape=tuple(size) if has_mask else None)
        prepared = []
        for index, sample in enumerate(samples):
            moved = sample.new(metainfo={**sample.metainfo, **record, 'padding_size': padding})
            for name, value in sample.items():
                own = PixelData(data=fields[name][index]) if name in fields else None
                moved.set_data({name: self.cast_data(value) if own is None else own})
            prepared.append(moved)
        return dict(inputs=self._pad('inputs', images, padding), data_samples=prepared)

    def _pad(self, name: str, values: Tensor, padding: tuple[int, int, int, int]) -> Tensor:
        """Pads images, masks, pseudo labels or valid pixels, each with its own value."""
        own = dict(inputs=self.pad_val, valid_mask=False).get(name, self.seg_pad_val)
        return pad(values, padding, value=own) if any(padding) else values


def _with_valid_mask(image: Tensor, sample: SegDataSample) -> SegDataSample:
    """Adds the real pixels of an image, all of it unless the pipeline has padded it."""
    if 'valid_mask' not in sample:
        sample = sample.clone()
        valid = torch.ones((1, *image.shape[-2:]), dtype=torch.bool)
        sample.set_field(PixelData(data=valid), 'valid_mask')
    return sample


# What a sample may hold for each pixel.
_FIELDS = ('gt_sem_seg', 'gt_edge_map', 'gt_depth_map', 'pseudo_sem_seg', 'valid_mask')


def _stacked(data: dict[str, Any]) -> dict[str, Tensor] | None:
    """Stacks images and each field of the samples; None unless all have one size and type."""
    samples = data['data_samples']
    parts = {'inputs': data['inputs']}
    for name in _FIELDS:
        there = [sample.get(name).data for sample in samples if name in sample]
        parts |= {name: there} if there else {}
    first = data['inputs'][0].shape[-2:]
    for values in parts.values():
        kinds = {(value.shape, value.dtype, value.device) for value in values}
        if len(kinds) > 1 or len(values) < len(samples) or values[0].shape[-2:] != first:
            return None
    return {name: torch.stack(values) for name, values in parts.items()}
