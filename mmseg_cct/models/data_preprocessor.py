"""Normalisation, padding and stacking of batches with a labelled and an unlabelled branch."""

from typing import Any

from mmseg.models import SegDataPreProcessor
from mmseg.registry import MODELS

from mmseg_cct.datasets.pseudo_labels import pad_pseudo_labels


@MODELS.register_module()
class BranchPreprocessor(SegDataPreProcessor):
    """MMSeg's preprocessor, applied to each branch of a semi-supervised batch.

    A plain batch passes through unchanged, so validation, testing, inference and the supervised
    baseline use the same object. Pseudo labels are padded as masks are. Takes the arguments of
    `SegDataPreProcessor`.
    """

    def forward(self, data: dict, training: bool = False) -> dict[str, Any]:
        """Prepares a batch for the model.

        Args:
            data: `inputs` and `data_samples`; each a list, or a dict of lists by branch name.
            training: Whether to pad to the training size and run the batch augmentations.

        Returns:
            `inputs`, one tensor `(N, 3, H, W)` or one by branch, and `data_samples` likewise.
        """
        if not isinstance(data['inputs'], dict):
            return super().forward(data, training)
        branches = {
            name: super(BranchPreprocessor, self).forward(
                dict(inputs=inputs, data_samples=data['data_samples'][name]), training)
            for name, inputs in data['inputs'].items()
        }
        for branch in branches.values():
            for sample in branch['data_samples']:
                pad_pseudo_labels(sample, branch['inputs'].shape[-2:], self.seg_pad_val)
        return {
            key: {name: branch[key] for name, branch in branches.items()}
            for key in ('inputs', 'data_samples')
        }
