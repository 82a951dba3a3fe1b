"""Checks that a batch and a main decoder can train on unlabelled images."""

from collections.abc import Sequence

from torch import Tensor, nn

from mmseg_cct.errors import UserError


def require_pairs(inputs: dict[str, Tensor] | Tensor, segmentor: str) -> None:
    """Rejects a plain batch of labelled images, without branches."""
    if not isinstance(inputs, dict):
        problem = f'{segmentor} trains on pairs of a labelled and an unlabelled image'
        raise UserError('train_dataloader.dataset', problem, 'a SemiSegDataset with both')


def last_stage(seg_logits: Tensor | Sequence[Tensor]) -> Tensor:
    """Returns the logits that a test predicts with, of a main decoder that returns each stage's.

    Raises:
        UserError: For a tuple, whose parts are of several branches, as in DAHead.
    """
    if isinstance(seg_logits, tuple):
        problem = f'returns a tuple of {len(seg_logits)} predictions'
        expected = 'one map of seg_logits, or a list of them with one for each stage'
        raise UserError('model.decode_head', problem, expected)
    return seg_logits if isinstance(seg_logits, Tensor) else seg_logits[-1]


def require_one_output_per_class(decode_head: nn.Module) -> None:
    """Rejects a main decoder with one output for two classes, as its softmax is 1 everywhere."""
    if getattr(decode_head, 'out_channels', None) == 1:
        raise UserError('model.decode_head.out_channels=1', '', 'one output for each class, 2')
