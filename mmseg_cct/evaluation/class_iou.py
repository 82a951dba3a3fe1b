"""IoU by class among the metrics."""

from typing import Any

import torch
from mmseg.evaluation import IoUMetric
from mmseg.registry import METRICS

from mmseg_cct.utils.arguments import require_arguments_of

from .findings import detection_scores, foreground_of


@METRICS.register_module()
class ClassIoUMetric(IoUMetric):
    """MMSeg's `IoUMetric` that also logs the IoU of each class, as `IoU.NAME`.

    MMSeg prints a table of the classes; as metrics they have curves in TensorBoard and other
    loggers. A class that neither occurs nor is predicted is left out. With two classes, the IoU,
    F1, precision and recall of the one to find (see `foreground_of`) come first: if it fills few
    pixels, the means over both classes hide it.

    Args:
        **kwargs: Arguments of `IoUMetric`.
    """

    def __init__(self, **kwargs: Any) -> None:
        # MMSeg's test tool passes keep_results to every metric
        require_arguments_of(IoUMetric, kwargs.keys() - {'keep_results'}, 'ClassIoUMetric')
        super().__init__(**kwargs)

    def compute_metrics(self, results: list) -> dict[str, float]:
        """Adds the IoU by class, in percent, to MMSeg's metrics."""
        metrics = super().compute_metrics(results)
        if self.format_only:
            return metrics
        areas = [torch.stack(area).sum(0) for area in zip(*results)]
        classes = self.dataset_meta['classes']
        for name, inside, total in zip(classes, *areas[:2]):
            if total > 0:
                metrics[f'IoU.{name}'] = round(100 * float(inside / total), 2)
        index = foreground_of(classes)
        if index is None or areas[1][index] == 0:
            return metrics
        inside, _, predicted, truth = (float(area[index]) for area in areas)
        scores = detection_scores(inside, predicted, truth)
        first = f'IoU.{classes[index]}'
        found = {f'{key}.{classes[index]}': round(value, 2) for key, value in scores.items()}
        return {first: metrics[first], **found, **metrics}
