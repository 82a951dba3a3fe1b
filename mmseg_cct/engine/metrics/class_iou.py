"""IoU by class among the metrics."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from mmseg.evaluation import IoUMetric
from mmseg.registry import METRICS
from torch import Tensor

from mmseg_cct.utils.ranges import require_arguments_of

from .detection import detection_scores, foreground_of


@METRICS.register_module()
class ClassIoUMetric(IoUMetric):
    """MMSeg's `IoUMetric` that also logs the IoU of each class, as `IoU.NAME`.

    MMSeg prints a table of the classes; as metrics they have curves in TensorBoard and other
    loggers. `mIoU`, `mAcc`, `mDice` and `aAcc` are MMSeg's: a class that no mask shows counts as 0
    in mIoU if it is predicted anywhere, and has no `IoU.NAME`. A class that is never predicted
    counts as 0 in `mFscore` and `mPrecision`, whereas MMSeg leaves it out. With two classes, the
    IoU, F1, precision and recall of the one to find (see `foreground_of`) come first: if it fills
    few pixels, the means over both classes hide it.

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
        name = None if index is None else self.dataset_meta['classes'][index]
        scores = [f'{key}.{name}' for key in detection_scores(0, 0, 0) if name in classes]
        return [*(f'IoU.{name}' for name in classes), *scores]

    def compute_metrics(self, results: list) -> dict[str, float]:
        """Adds the IoU by class, in percent, to MMSeg's metrics."""
        metrics = super().compute_metrics(results)
        if self.format_only:
            return metrics
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
        iou = f'IoU.{classes[index]}'
        rounded = {f'{key}.{classes[index]}': round(value, 2) for key, value in scores.items()}
        return {iou: metrics[iou], **rounded, **metrics}

    @staticmethod
    def total_area_to_metrics(
        intersection: Tensor, union: Tensor, predicted: Tensor, truth: Tensor, *options: Any
    ) -> dict[str, np.ndarray]:
        """Computes MMSeg's metrics by class `(C,)` from numbers of pixels `(C,)`."""
        metrics = IoUMetric.total_area_to_metrics(intersection, union, predicted, truth, *options)
        # 0/0 is NaN, which the means leave out: finding nothing of a class would raise them
        for name, has_pixels in (('Fscore', union > 0), ('Precision', truth > 0)):
            if name in metrics:
                missed = np.isnan(metrics[name]) & has_pixels.numpy()
                metrics[name] = np.where(missed, 0, metrics[name])
        return metrics
