"""IoU by class among the metrics."""

from collections.abc import Sequence
from typing import Any

import torch
from mmseg.evaluation import IoUMetric
from mmseg.registry import METRICS
from torch import Tensor

from mmseg_cct.engine.findings import detection_scores, foreground_of
from mmseg_cct.utils.ranges import require_arguments_of


@METRICS.register_module()
class ClassIoUMetric(IoUMetric):
    """MMSeg's `IoUMetric` that also logs the IoU of each class, as `IoU.NAME`.

    MMSeg prints a table of the classes; as metrics they have curves in TensorBoard and other
    loggers. Classes that no mask shows are left out, also of the means, so that the names and the
    terms of a mean are the same in every validation. With two classes, the IoU, F1, precision and
    recall of the one to find (see `foreground_of`) come first: if it fills few pixels, the means
    over both classes hide it.

    Args:
        **kwargs: Arguments of `IoUMetric`.
    """

    default_prefix = ''  # none; mmengine warns of None

    def __init__(self, **kwargs: Any) -> None:
        # MMSeg's test tool passes keep_results to every metric
        require_arguments_of(IoUMetric, kwargs.keys() - {'keep_results'}, 'ClassIoUMetric')
        super().__init__(**kwargs)

    def names_for(self, classes: Sequence[str]) -> list[str]:
        """Names the metrics that a validation has of some classes, those that its masks show."""
        index = foreground_of(self.dataset_meta['classes'])
        first = None if index is None else self.dataset_meta['classes'][index]
        scores = [f'{key}.{first}' for key in detection_scores(0, 0, 0) if first in classes]
        return [*(f'IoU.{name}' for name in classes), *scores]

    def compute_metrics(self, results: list) -> dict[str, float]:
        """Adds the IoU by class, in percent, to MMSeg's metrics."""
        if self.format_only:
            return super().compute_metrics(results)
        results = of_shown_classes(results)
        metrics = super().compute_metrics(results)
        areas = [torch.stack(area).sum(0) for area in zip(*results)]
        classes = self.dataset_meta['classes']
        for name, inside, total, truth in zip(classes, *areas[:2], areas[3]):
            if truth > 0:
                metrics[f'IoU.{name}'] = round(100 * float(inside / total), 2)
        index = foreground_of(classes)
        if index is None or areas[3][index] == 0:
            return metrics
        inside, _, predicted, truth = (float(area[index]) for area in areas)
        scores = detection_scores(inside, predicted, truth)
        first = f'IoU.{classes[index]}'
        found = {f'{key}.{classes[index]}': round(value, 2) for key, value in scores.items()}
        return {first: metrics[first], **found, **metrics}


def of_shown_classes(results: Sequence[Sequence[Tensor]]) -> list[tuple[Tensor, ...]]:
    """Takes classes that no mask shows out of `IoUMetric`'s areas, so that no mean counts them.

    One false pixel of such a class would add a 0 to the mean; it still lowers the IoU of the class
    that is there. Areas are those of intersection, union, prediction and truth, each `(C,)`.
    """
    if not results:
        return []
    shown = torch.stack([areas[3] for areas in results]).sum(0) > 0
    return [tuple(area * shown for area in areas) for areas in results]
