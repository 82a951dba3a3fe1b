"""Marks samples with the name of their domain."""

from collections.abc import Mapping

from mmcv.transforms import BaseTransform
from mmseg.registry import TRANSFORMS


@TRANSFORMS.register_module()
class SetDomain(BaseTransform):
    """Marks packed samples with their domain, which selects their preprocessing and decoder.

    Comes after `PackSegInputs`. `MultiDomainDataset` and `MultiDomainConcatDataset` apply it
    themselves; a pipeline needs it only where images come from elsewhere, as in MMSeg's inference.

    Args:
        domain: Name of the domain.
    """

    def __init__(self, domain: str) -> None:
        self.domain = domain

    def transform(self, results: dict) -> dict:
        """Writes `domain` into the meta information of every sample.

        `data_samples` is a sample, or a list (from `TestTimeAug`) or dict of samples.
        """
        samples = results['data_samples']
        if isinstance(samples, Mapping):
            samples = list(samples.values())
        for sample in samples if isinstance(samples, list) else [samples]:
            sample.set_metainfo(dict(domain=self.domain))
        return results
