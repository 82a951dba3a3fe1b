"""Preprocessing of a batch by its domain."""

from collections.abc import Collection, Iterable, Mapping
from typing import Any

from mmengine.model import BaseDataPreprocessor, ModuleDict
from mmseg.registry import MODELS
from mmseg.structures import SegDataSample

from mmseg_cct.errors import UserError


def domain_of(
    data_samples: Iterable[SegDataSample] | Mapping[str, Iterable[SegDataSample]] | None,
    known: Collection[str],
) -> str:
    """Returns the domain of a batch, which is `domain` in the metainfo of all its samples.

    Raises:
        UserError: If there is no domain, more than one, or one that the model does not have.
    """
    branches: Iterable[Iterable[SegDataSample]]
    branches = data_samples.values() if isinstance(data_samples, Mapping) else [data_samples or ()]
    domains = {sample.metainfo.get('domain') for branch in branches for sample in branch}
    # decoders and classes differ by domain: a mixed batch has no loss
    if len(domains) != 1 or not domains <= {*known}:
        names = ' and '.join(sorted(map(str, domains))) or 'none'
        sets = 'MultiDomainDataset, MultiDomainConcatDataset or SetDomain in the pipeline'
        expected = f'one of {", ".join(known)}, by a {sets}, and a batch_size of 1 in val and test'
        raise UserError('domains of a batch', names, expected)
    return domains.pop()


@MODELS.register_module()
class MultiDomainPreprocessor(BaseDataPreprocessor):
    """One preprocessor per domain, each with its own normalisation and size.

    Args:
        domains: Config of each preprocessor, by name of the domain.
    """

    def __init__(self, domains: Mapping[str, dict]) -> None:
        super().__init__()
        self.domains = ModuleDict({name: MODELS.build(cfg) for name, cfg in domains.items()})

    def forward(self, data: dict, training: bool = False) -> dict[str, Any]:
        """Applies the preprocessor of the batch's domain."""
        domain = domain_of(data.get('data_samples'), self.domains)
        return self.domains[domain](data, training)
