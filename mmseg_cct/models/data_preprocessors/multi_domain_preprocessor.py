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
    expected = ', '.join(known)
    if not domains or None in domains:
        sets = 'MultiDomainDataset, MultiDomainConcatDataset or SetDomain in the pipeline'
        raise UserError('a sample names no domain', '', f'one of {expected}, by a {sets}')
    # decoders and classes differ by domain: a mixed batch has no loss
    if len(domains) > 1:
        mixed = f'a batch mixes the domains {" and ".join(sorted(domains))}'
        sizes = 'one batch_size in train_dataloader and its sampler, 1 in those of val and test'
        raise UserError(mixed, '', sizes)
    domain = domains.pop()
    if domain not in known:
        raise UserError('model.domains', f'no domain {domain!r}', f'one of {expected}')
    return domain


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
