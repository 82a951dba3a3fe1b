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
    """

    def __init__(
        self, mean: Sequence[float] | None = None, std: Sequence[float] | None = None, **kwargs: Any
    ) -> None:
        if mean is None or std is None or len(mean) == len(std) in (1, 3):
            super().__init__(mean, std, **kwargs)
        else:
            super().__init__(**kwargs)
            self._enable_normalize = True
            for name, values in (('mean', mean), ('std', std)):
                self.register_buffer(name, torch.tensor(values).float().view(-1, 1, 1), False)
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
                pairs = zip(images, samples, strict=True)
                samples = [_with_valid_mask(image, sample) for image, sample in pairs]
            branches[name] = self._prepare(dict(inputs=images, data_samples=samples), training)
        keys = 'inputs', 'data_samples'
        return {key: {name: part[key] for name, part in branches.items()} for key in keys}

    def _prepare(self, data: dict, training: bool) -> dict[str, Any]:
        # MMSeg pads to one of the two
        is_padded = (self.size is None) != (self.size_divisor is None)
        if training and is_padded and not self.batch_augments and (parts := _parts(data)):
            return self._prepare_stacked(parts, data['data_samples'])
        data = self.cast_data(data)
        if self._swaps_channels and len(data['inputs'][0]) == 3:
            data['inputs'] = [image.flip(0) for image in data['inputs']]
        data = super().forward(data, training)
        # MMSeg pads images and masks; pseudo labels and valid pixels are ours to pad
        height, width = data['inputs'].shape[-2:]
        for sample in data['data_samples'] or ():
            for name in {'pseudo_sem_seg', 'valid_mask'} & set(sample.keys()):
                values = sample.get(name).data
                padding = _padding(values.shape[-2:], (height, width))
                sample.set_field(PixelData(data=self._pad(name, values, padding)), name)
        return data

    def _prepare_stacked(
        self, parts: dict[str, list[Tensor]], samples: list[Any]
    ) -> dict[str, Any]:
        """Prepares a batch by a few operations, instead of a few for each image."""
        sizes = [tuple(image.shape[-2:]) for image in parts['inputs']]
        largest = [max(sides) for sides in zip(*sizes)]
        if self.size is None:
            size = [-(-side // self.size_divisor) * self.size_divisor for side in largest]
        else:
            size = [max(*sides) for sides in zip(self.size, largest, strict=True)]
        # padded and stacked on the host, in the type of the files: one copy to the device for all
        # images, and one for all masks
        fields = self.cast_data({name: self._stack(name, parts[name], size) for name in parts})
        images = fields.pop('inputs')
        if self._swaps_channels and images.shape[1] == 3:
            images = images.flip(1)
        images = images.float()
        if self._enable_normalize:
            images = images.sub_(self.mean).div_(self.std)  # in place: ours, and large
        if any(image_size != tuple(size) for image_size in sizes):  # MMSeg pads what is normalised
            outside = torch.zeros(len(sizes), 1, *size, dtype=torch.bool)
            for mask, (height, width) in zip(outside, sizes):
                mask[:, height:] = mask[..., width:] = True
            images.masked_fill_(self.cast_data(outside), self.pad_val)

        # what MMSeg's `stack_batch` records of each image
        has_mask = any(name.startswith('gt_') for name in fields)
        prepared = []
        for index, (sample, image_size) in enumerate(zip(samples, sizes)):
            meta = dict(img_shape=torch.Size(image_size), padding_size=_padding(image_size, size))
            shapes = dict(meta, pad_shape=tuple(size) if has_mask else None)
            moved = sample.new(metainfo={**sample.metainfo, **shapes})
            for name, value in sample.items():
                is_stacked = name in fields
                field = PixelData(data=fields[name][index]) if is_stacked else self.cast_data(value)
                moved.set_data({name: field})
            prepared.append(moved)
        return dict(inputs=images, data_samples=prepared)

    def _stack(self, name: str, values: list[Tensor], size: Sequence[int]) -> Tensor:
        return torch.stack([self._pad(name, v, _padding(v.shape[-2:], size)) for v in values])

    def _pad(self, name: str, values: Tensor, padding: tuple[int, int, int, int]) -> Tensor:
        """Pads masks, pseudo labels, valid pixels, or images that are not normalised yet."""
        pad_val = dict(inputs=0, valid_mask=False).get(name, self.seg_pad_val)
        return pad(values, padding, value=pad_val) if any(padding) else values


def _with_valid_mask(image: Tensor, sample: SegDataSample) -> SegDataSample:
    """Adds the real pixels of an image, all of it unless the pipeline has padded it."""
    if 'valid_mask' not in sample:
        sample = sample.clone()
        valid = torch.ones((1, *image.shape[-2:]), dtype=torch.bool)
        sample.set_field(PixelData(data=valid), 'valid_mask')
    return sample


# What a sample may hold for each pixel.
_FIELDS = ('gt_sem_seg', 'gt_edge_map', 'gt_depth_map', 'pseudo_sem_seg', 'valid_mask')


def _padding(map_size: Sequence[int], size: Sequence[int]) -> tuple[int, int, int, int]:
    """Padding of a map to a size, on the right and below, as `torch.nn.functional.pad` takes it."""
    return (0, size[1] - map_size[1], 0, size[0] - map_size[0])


def _parts(data: dict[str, Any]) -> dict[str, list[Tensor]] | None:
    """Collects images and each field of the samples; None unless they can be padded and stacked."""
    samples = data['data_samples']
    parts = {'inputs': list(data['inputs'])}
    for name in _FIELDS:
        if maps := [sample.get(name).data for sample in samples if name in sample]:
            parts[name] = maps
    sizes = [image.shape[-2:] for image in parts['inputs']]
    for values in parts.values():
        layouts = {(value.shape[:-2], value.dtype, value.device) for value in values}
        if len(layouts) > 1 or [value.shape[-2:] for value in values] != sizes:
            return None
    return parts
