"""IoU by class among the metrics."""

from typing import Any

import torch
from mmseg.evaluation import IoUMetric
from mmseg.registry import METRICS

from mmseg_cct.utils.arguments import require_arguments_of


@METRICS.register_module()
class ClassIoUMetric(IoUMetric):
    """MMSeg's `IoUMetric`, whose IoU by class is logged too, as `IoU.NAME`.

    MMSeg prints a table of the classes; as metrics they have curves in TensorBoard and other
    loggers. A class that neither occurs nor is predicted is left out.

    Args:
        **kwargs: Arguments of `IoUMetric`.
    """

    def __init__(self, **kwargs: Any) -> None:
        # MMSeg's test tool gives keep_results to every metric
        require_arguments_of(IoUMetric, kwargs.keys() - {'keep_results'}, 'ClassIoUMetric')
        super().__init__(**kwargs)

    def compute_metrics(self, results: list) -> dict[str, float]:
        """Adds the IoU by class, in percent, to MMSeg's metrics."""
        metrics = super().compute_metrics(results)
        if self.format_only:
            return metrics
        intersection, union = (torch.stack(area).sum(0) for area in list(zip(*results))[:2])
        for name, inside, total in zip(self.dataset_meta['classes'], intersection, union):
            if total > 0:
                metrics[f'IoU.{name}'] = round(100 * float(inside / total), 2)
        return metrics
