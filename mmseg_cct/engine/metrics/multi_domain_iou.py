"""IoU metrics of several domains in one evaluation."""

from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from mmengine.evaluator import BaseMetric
from mmengine.logging import print_log
from mmseg.evaluation import IoUMetric
from mmseg.registry import METRICS

from mmseg_cct.errors import UserError
from mmseg_cct.utils.ranges import require_arguments_of


@METRICS.register_module()
class MultiDomainIoUMetric(BaseMetric):
    """An `IoUMetric` for each domain, and the averages over domains.

    Metrics are `DOMAIN/mIoU`, `DOMAIN/aAcc` and so on, and their means over domains, `mIoU_avg`,
    `aAcc_avg` and so on, in which all domains count equally, whatever their numbers of images.

    Args:
        collect_device: 'gpu' gathers the results of several processes in memory, 'cpu' by files.
        prefix: Precedes all names, as in `prefix/camvid/mIoU`.
        collect_dir: Folder for gathering on the CPU; by default a temporary one.
        output_dir: Folder for the predictions, with a subfolder for each domain.
        **kwargs: Arguments of `IoUMetric`.
    """

    def __init__(
        self,
        collect_device: str = 'cpu',
        prefix: str | None = None,
        collect_dir: str | None = None,
        output_dir: str | None = None,
        **kwargs: Any,
    ) -> None:
        # MMSeg's test tool passes keep_results to every metric
        require_arguments_of(IoUMetric, kwargs.keys() - {'keep_results'}, 'MultiDomainIoUMetric')
        super().__init__(collect_device, prefix, collect_dir)
        self.output_dir = output_dir
        self.kwargs = kwargs
        self.metrics: dict[str, IoUMetric] = {}

    @property
    def dataset_meta(self) -> dict | None:
        """Meta information (classes, palette) of each domain, under `domains`."""
        return self._dataset_meta

    @dataset_meta.setter
    def dataset_meta(self, dataset_meta: dict | None) -> None:
        if not dataset_meta or 'domains' not in dataset_meta:
            expected = 'a MultiDomainConcatDataset in val_dataloader and test_dataloader'
            raise UserError('MultiDomainIoUMetric', 'the data set has one domain', expected)
        self._dataset_meta = dataset_meta
        self.metrics = {}
        for name, meta in dataset_meta['domains'].items():
            folder = self.output_dir and str(Path(self.output_dir, name))
            metric = IoUMetric(output_dir=folder, prefix=name, **self.kwargs)
            metric.dataset_meta = meta
            self.metrics[name] = metric

    def process(self, data_batch: Any, data_samples: Sequence[dict]) -> None:
        """Counts the pixels of each sample by the classes of its domain."""
        for sample in data_samples:
            metric = self.metrics[sample['domain']]
            metric.process(data_batch, [sample])
            # Kept here, not in the metric: in a distributed run the order of all samples matters.
            self.results += [(sample['domain'], result) for result in metric.results]
            metric.results.clear()

    def compute_metrics(self, results: list) -> dict[str, float]:
        """Computes the metrics of each domain and their averages, by name, in percent."""
        by_domain = defaultdict(list)
        for domain, result in results:
            by_domain[domain].append(result)
        metrics: dict[str, float] = {}
        values = defaultdict(list)
        for name, metric in self.metrics.items():
            if not by_domain[name]:  # predictions are only written
                continue
            print_log(f'domain {name}:', logger='current')
            for key, value in metric.compute_metrics(by_domain[name]).items():
                metrics[f'{name}/{key}'] = value
                values[key].append(value)
        metrics.update({f'{key}_avg': round(float(np.mean(v)), 2) for key, v in values.items()})
        return metrics
