"""Check that a training batch has a labelled and an unlabelled branch."""

from torch import Tensor

from mmseg_cct.errors import UserError


def require_pairs(inputs: dict[str, Tensor] | Tensor, segmentor: str) -> None:
    """Rejects a batch of labelled images alone.

    Args:
        inputs: Images `(N, 3, H, W)` by branch, or of one branch alone.
        segmentor: Class name of the model, for the message.

    Raises:
        UserError: If the images are not given by branch.
    """
    if not isinstance(inputs, dict):
        raise UserError(
            f'train_dataloader.dataset: {segmentor} trains on pairs of a labelled and an '
            'unlabelled image; expected a SemiSegDataset with both'
        )
