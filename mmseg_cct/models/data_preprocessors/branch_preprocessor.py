"""Normalisation, padding and stacking of labelled and unlabelled branches."""

from collections.abc import Sequence
from typing import Any

import torch
from mmengine.structures import BaseDataElement, PixelData
from mmseg.models import SegDataPreProcessor
from mmseg.registry import MODELS
from torch import Tensor
from torch.nn.functional import pad

from mmseg_cct.errors import UserError
from mmseg_cct.models.layers.transfer import to_device


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
        UserError: If `mean` and `std` differ in length, the pipeline packed nothing, or images of a
            branch still differ in size after padding.
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
        self._swaps_channels: bool = self._channel_conversion  # type: ignore[has-type]
        self._channel_conversion = False

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
        if 'inputs' not in data:
            expected = "PackSegInputs at the end of the data set's pipeline"
            raise UserError('model.data_preprocessor', 'a batch without inputs', expected)
        if not isinstance(data['inputs'], dict):
            return self._prepare(data, training)
        # a batch with K labelled images per unlabelled one has no partner for some
        data = {
            key: {
                name: [part for part in parts if part is not None] for name, parts in named.items()
            }
            for key, named in data.items()
        }
        if training:
            self._require_stackable(data['inputs'])
        branches = {
            name: self._prepare(
                dict(inputs=inputs, data_samples=data['data_samples'][name]), training
            )
            for name, inputs in data['inputs'].items()
        }
        # MMSeg pads images and masks; pseudo labels and valid pixels are ours to pad
        for name, branch in branches.items():
            size = branch['inputs'].shape[-2:]
            for image, sample in zip(data['inputs'][name], branch['data_samples']):
                if 'pseudo_sem_seg' in sample:
                    labels = sample.pseudo_sem_seg.data
                    sample.pseudo_sem_seg = _padded(labels, size, self.seg_pad_val)
                if name.startswith('unlabeled'):
                    own = branch['inputs'].new_ones((1, *image.shape[-2:]), dtype=torch.bool)
                    valid = sample.valid_mask.data if 'valid_mask' in sample else own
                    sample.valid_mask = _padded(valid, size, False)
        return {
            key: {name: branch[key] for name, branch in branches.items()}
            for key in ('inputs', 'data_samples')
        }

    def _prepare(self, data: dict, training: bool) -> dict[str, Any]:
        """Prepares a plain batch or one branch as MMSeg does."""
        data = self.cast_data(data)
        if self._swaps_channels and len(data['inputs'][0]) == 3:
            data['inputs'] = [image.flip(0) for image in data['inputs']]
        return super().forward(data, training)

    def _require_stackable(self, branches: dict[str, list[Tensor]]) -> None:
        """Checks that padding brings the images `(3, H, W)` of each branch to one size."""
        for name, images in branches.items():
            least = self.size or (0, 0)
            sizes = {(max(i.shape[-2], least[0]), max(i.shape[-1], least[1])) for i in images}
            if self.size_divisor is None and len(sizes) > 1:
                shown = ' and '.join(f'{h}×{w}' for h, w in sorted(sizes)[:3])
                raise UserError(
                    f'train_dataloader.dataset.{name}.pipeline',
                    f'{name} images of {shown} in one batch',
                    'one size, as RandomCrop gives, or a model.data_preprocessor.size of at least '
                    'the largest',
                )


def _padded(values: Tensor, size: tuple[int, int], value: int) -> PixelData:
    """Pads values `(1, ·, ·)` at the right and bottom to the size of their batch, `(1, H, W)`."""
    right, below = size[1] - values.shape[-1], size[0] - values.shape[-2]
    return PixelData(data=pad(values, (0, right, 0, below), value=value))
