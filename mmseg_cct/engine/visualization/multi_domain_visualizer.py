"""Visualizer of several domains."""

from typing import Any

import numpy as np
from mmseg.registry import VISUALIZERS
from mmseg.structures import SegDataSample
from mmseg.visualization import SegLocalVisualizer


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
