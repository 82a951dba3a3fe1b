"""Where mmengine writes curves, and whose colours MMSeg paints."""

from typing import Any

import numpy as np
from mmengine.visualization import TensorboardVisBackend
from mmseg.registry import VISBACKENDS, VISUALIZERS
from mmseg.structures import SegDataSample
from mmseg.visualization import SegLocalVisualizer


@VISBACKENDS.register_module()
class GroupedTensorboardVisBackend(TensorboardVisBackend):
    """mmengine's TensorBoard backend, with the curves of one part of the model in one group.

    TensorBoard groups by the part of a name before the first `/`, but MMSeg joins the names of
    losses by a dot; so `aux.consistency` becomes `aux/consistency`.
    """

    def add_scalar(self, name: str, value: Any, step: int = 0, **kwargs: Any) -> None:
        """Writes a value; the first dot of its name becomes a `/`."""
        super().add_scalar(name.replace('.', '/', 1), value, step, **kwargs)


@VISUALIZERS.register_module()
class MultiDomainVisualizer(SegLocalVisualizer):
    """`SegLocalVisualizer` with the classes and colours of each sample's domain."""

    dataset_meta: dict

    def add_datasample(
        self, name: str, image: np.ndarray, data_sample: SegDataSample | None = None, **kwargs: Any
    ) -> None:
        """Paints a sample on an image `(H, W, 3)`, uint8 RGB, in its domain's colours."""
        domains = self.dataset_meta
        if data_sample is not None:
            self.dataset_meta = domains['domains'][data_sample.domain]
        try:
            super().add_datasample(name, image, data_sample, **kwargs)
        finally:
            self.dataset_meta = domains
