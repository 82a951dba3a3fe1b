"""Data sets of several domains: pairs to train on, single images to evaluate on."""

import itertools
from collections.abc import Mapping, Sequence

from mmengine.dataset import BaseDataset, ConcatDataset
from mmseg.registry import DATASETS
from torch.utils.data import Dataset

from mmseg_cct.datasets.transforms import SetDomain
from mmseg_cct.errors import UserError

from .samplers import MultiDomainDraw, PairDraw
from .samplers.pair_sampler import require_draws
from .semi_supervised import SemiSegDataset


@DATASETS.register_module()
class MultiDomainDataset(Dataset):
    """A `SemiSegDataset` for each domain, drawn by `MultiDomainSampler`.

    By their index the images come one at a time, one domain after the other.

    Args:
        domains: `SemiSegDataset` of each domain, or its config, by the domain's name. Without
            unlabelled sets they give the data of the supervised baseline.

    Raises:
        UserError: If a set is bad, or has another `labeled_per_unlabeled` than 1.
    """

    def __init__(self, domains: Mapping[str, dict | SemiSegDataset]) -> None:
        self.domains = {name: _build_pairs(name, config) for name, config in domains.items()}
        self._set_domain = {name: SetDomain(name) for name in self.domains}
        # classes and palette of each domain; MMSeg's tools know them by the second name
        metas = {name: part.metainfo for name, part in self.domains.items()}
        self.metainfo = self.METAINFO = dict(domains=metas)

    def __len__(self) -> int:
        """Returns the number of images of all domains."""
        return sum(map(len, self.domains.values()))

    def __getitem__(self, draw: MultiDomainDraw | int) -> dict:
        """Loads like `SemiSegDataset`, and marks the samples with their domain."""
        pair: PairDraw | int
        if isinstance(draw, MultiDomainDraw):
            domain, pair = draw
        else:
            images = ((name, i) for name, part in self.domains.items() for i in range(len(part)))
            domain, pair = next(itertools.islice(images, range(len(self))[draw], None))
        return self._set_domain[domain](self.domains[domain][pair])

    def __getitems__(self, draws: Sequence[MultiDomainDraw]) -> list[dict]:
        """Loads a batch for a data loader."""
        require_draws(draws, MultiDomainDraw, 'MultiDomainSampler', 'MultiDomainDataset')
        return [self[draw] for draw in draws]


@DATASETS.register_module()
class MultiDomainConcatDataset(ConcatDataset):
    """Validation or test sets of several domains, one after the other.

    Args:
        domains: Data set of each domain, or its config, by the domain's name.
        pipeline: Pipelines by domain that replace those of the sets, which are configs then: where
            MMSeg's `test.py --tta` puts the `tta_pipeline`.
    """

    def __init__(
        self, domains: Mapping[str, dict | BaseDataset], pipeline: Mapping[str, list] | None = None
    ) -> None:
        if pipeline is not None:
            domains = {name: {**part, 'pipeline': pipeline[name]} for name, part in domains.items()}
        sets = [DATASETS.build(c) if isinstance(c, dict) else c for c in domains.values()]
        # Domains differ in their classes and palettes, so no key has to be equal.
        super().__init__(sets, ignore_keys=[key for part in sets for key in part.metainfo])
        self._set_domain = [SetDomain(name) for name in domains]
        self.domains = dict(zip(domains, sets))
        self._metainfo = dict(domains={name: part.metainfo for name, part in self.domains.items()})

    def __getitem__(self, index: int) -> dict:
        """Loads an image by its index in all sets, and marks the sample with its domain."""
        number, _ = self._get_ori_dataset_idx(index)
        return self._set_domain[number](super().__getitem__(index))


def _build_pairs(name: str, config: dict | SemiSegDataset) -> SemiSegDataset:
    key = f'train_dataloader.dataset.domains.{name}'
    try:
        pairs = DATASETS.build(config) if isinstance(config, dict) else config
    except UserError as error:
        raise error.renamed(lambda part: f'{key}.{part}') from None
    if (ratio := pairs.labeled_per_unlabeled) != 1:
        raise UserError(f'{key}.labeled_per_unlabeled={ratio}', '', '1 for each of the domains')
    return pairs
