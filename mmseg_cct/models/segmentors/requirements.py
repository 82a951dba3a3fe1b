"""Checks that a batch and a main decoder can train on unlabelled images."""

from collections.abc import Mapping, Sequence
from importlib import import_module
from typing import Any

from torch import Tensor, nn

from mmseg_cct.config.load import COMPILED_OPERATORS
from mmseg_cct.errors import UserError

# What heads of MMSeg import that it does not install: mmcv's compiled operators, and mmdetection.
_PACKAGES = {
    **dict.fromkeys(('CCHead', 'PSAHead', 'PointHead'), 'mmcv.ops'),
    **dict.fromkeys(('Mask2FormerHead', 'MaskFormerHead'), 'mmdet.models'),
}


def require_packages(heads: Sequence[Mapping[str, Any]]) -> None:
    """Rejects main decoders, by their configs, whose packages are not installed."""
    for head in heads:
        try:
            import_module(_PACKAGES.get(str(head.get('type')).removeprefix('mmseg.'), 'mmseg'))
        except ModuleNotFoundError as error:
            problem = f'{head["type"]} needs {error.name}'
            raise UserError('model.decode_head.type', problem, COMPILED_OPERATORS) from error


def require_pairs(inputs: dict[str, Tensor] | Tensor, segmentor: str) -> None:
    """Rejects a plain batch of labelled images, without branches."""
    if not isinstance(inputs, dict):
        problem = f'{segmentor} trains on pairs of a labelled and an unlabelled image'
        raise UserError('train_dataloader.dataset', problem, 'a SemiSegDataset with both')


def require_one_output_per_class(decode_head: nn.Module) -> None:
    """Rejects a main decoder with one output for two classes, as its softmax is 1 everywhere."""
    if getattr(decode_head, 'out_channels', None) == 1:
        raise UserError('model.decode_head.out_channels=1', '', 'one output for each class, 2')
