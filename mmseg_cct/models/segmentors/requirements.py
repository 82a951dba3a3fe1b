"""Checks that a batch and a main decoder can train on unlabelled images."""

from torch import Tensor, nn

from mmseg_cct.errors import UserError


def require_pairs(inputs: dict[str, Tensor] | Tensor, segmentor: str) -> None:
    """Rejects a plain batch of labelled images, without branches."""
    if not isinstance(inputs, dict):
        problem = f'{segmentor} trains on pairs of a labelled and an unlabelled image'
        raise UserError('train_dataloader.dataset', problem, 'a SemiSegDataset with both')


def require_one_output_per_class(decode_head: nn.Module) -> None:
    """Rejects a main decoder with one output for two classes, as its softmax is 1 everywhere."""
    if getattr(decode_head, 'out_channels', None) == 1:
        raise UserError('model.decode_head.out_channels=1', '', 'one output for each class, 2')
