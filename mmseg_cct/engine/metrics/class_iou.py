"""IoU by class among the metrics."""

from typing import Any

import numpy as np
import torch
from mmseg.evaluation import IoUMetric
from mmseg.registry import METRICS
from torch import Tensor

from mmseg_cct.utils.ranges import require_arguments_of

from .scores import foreground_of, scores_of


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

    def compute_metrics(self, results: list) -> dict[str, float]:
        """Adds the IoU by class, in percent, to MMSeg's metrics."""
        metrics = super().compute_metrics(results)
        if self.format_only:
            return metrics
        intersection, _, predicted, truth = (torch.stack(a).sum(0).numpy() for a in zip(*results))
        areas, classes = (intersection, predicted, truth), self.dataset_meta['classes']
        for name, iou, pixels in zip(classes, scores_of(*areas)['IoU'], truth):
            if pixels > 0:
                metrics[f'IoU.{name}'] = round(100 * float(iou), 2)
        index = foreground_of(classes)
        if index is None or truth[index] == 0:
            return metrics
        scores = scores_of(*(area[index].astype(float) for area in areas))
        name = classes[index]
        foreground = {f'{key}.{name}': round(100 * float(scores[key]), 2) for key in scores}
        return {**foreground, **metrics}

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
