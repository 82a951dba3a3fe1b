"""Class ids in colours, where mmengine writes curves, and whose colours MMSeg paints."""

from collections.abc import Sequence
from typing import Any

import cv2
import numpy as np
from matplotlib import get_data_path
from mmengine.visualization import TensorboardVisBackend
from mmseg.registry import VISBACKENDS, VISUALIZERS
from mmseg.structures import SegDataSample
from mmseg.visualization import SegLocalVisualizer
from PIL import Image, ImageDraw, ImageFont

from mmseg_cct.datasets.files.images import as_rgb
from mmseg_cct.datasets.files.labels import is_background, means_ignored

__all__ = ['GroupedTensorboardVisBackend', 'MultiDomainVisualizer']

Palette = Sequence[Sequence[int]] | np.ndarray


def paint(labels: np.ndarray, palette: Palette) -> np.ndarray:
    """Paints class ids `(H, W)` as `(H, W, 3)` uint8, RGB; ids without a colour become white."""
    return full_palette(palette)[labels]


def full_palette(palette: Palette) -> np.ndarray:
    """Pads a palette to `(256, 3)` uint8, RGB, with white, the colour of ignored pixels."""
    colors = np.full((256, 3), 255, np.uint8)
    colors[: len(palette)] = np.reshape(palette, (-1, 3))
    return colors


def is_tinted(classes: Sequence[str]) -> np.ndarray:
    """Whether an overlay colours each class, `(C,)`; not the background or the unlabelled."""
    return np.array([not is_background(name) and not means_ignored(name) for name in classes], bool)


def blend(
    image: np.ndarray, labels: np.ndarray, classes: Sequence[str], palette: Palette, opacity: float
) -> np.ndarray:
    """Lays the colours of class ids `(H, W)` over a loaded image; returns RGB, uint8."""
    rgb = as_rgb(image)
    blended = cv2.addWeighted(rgb, 1.0 - opacity, paint(labels, palette), opacity, 0.0)
    tinted = np.zeros(256, bool)
    tinted[: len(classes)] = is_tinted(classes)
    np.copyto(blended, rgb, where=~tinted[labels][..., None])
    return blended


def legend_picture(classes: Sequence[str], palette: Palette, width: int) -> np.ndarray:
    """Draws class names beside their colours, `(h, width, 3)` uint8 RGB, in as many rows as needed.

    The letters grow with the width, from 10 to 28 pixels.
    """
    size = min(28, max(10, width // 40))
    font = ImageFont.truetype(f'{get_data_path()}/fonts/ttf/DejaVuSans.ttf', size)
    gap, row = size // 2, size + size // 2
    places, x, y = [], gap, 0
    for name in map(str, classes):
        right = x + size + 2 * gap + int(font.getlength(name))
        if x > gap and right > width:
            right, x, y = right - x + gap, gap, y + row
        places.append((x, y + gap))
        x = right + gap
    picture = Image.new('RGB', (width, y + row + gap), 'white')
    draw = ImageDraw.Draw(picture)
    for (x, y), name, color in zip(places, map(str, classes), palette):
        draw.rectangle((x, y, x + size, y + size), tuple(map(int, color)), (153, 153, 153))
        draw.text((x + size + gap, y + size // 2), name, 'black', font, anchor='lm')
    return np.array(picture)


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
