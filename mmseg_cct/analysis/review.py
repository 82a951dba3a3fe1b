"""One self-contained page that shows a batch before somebody labels it."""

import base64
import io
from collections.abc import Sequence
from typing import Any

import cv2
import numpy as np
from PIL import Image

from mmseg_cct.utils.templates import render
from mmseg_cct.visualization.label_maps import full_palette

from .batch_image import BatchImage, highest_disagreement

_THUMBNAIL = 160  # longer side of a thumbnail, in pixels


def review_page(
    batch: list[BatchImage],
    title: str,
    notes: Sequence[str],
    classes: Sequence[str],
    palette: Sequence[Sequence[int]],
) -> str:
    """Renders the page: image, prediction and disagreement of one image of the batch at a time.

    `notes` appear below the title.
    """
    highest = highest_disagreement(batch)
    return render(
        'analysis/review.html.jinja',
        title=title,
        notes=notes,
        highest=highest,
        cases=[_case(image, classes, palette, highest) for image in batch],
    )


def _case(
    image: BatchImage, classes: Sequence[str], palette: Sequence[Sequence[int]], highest: float
) -> dict[str, Any]:
    ids = np.bincount(image.labels.ravel(), minlength=256)[: len(classes)]
    shares = 100 * ids / max(ids.sum(), 1)
    scaled = np.clip(255 * image.disagreement / highest, 0, 255).astype(np.uint8)
    heat = cv2.applyColorMap(scaled, cv2.COLORMAP_MAGMA)
    return dict(
        name=str(image.name),
        rank=image.rank,
        score=f'{image.score:.3g}',
        width=image.size[0],
        height=image.size[1],
        photo=_jpeg(image.photo[..., ::-1]),
        thumbnail=_jpeg(shrink(image.photo, _THUMBNAIL)[..., ::-1]),
        labels=_palette_png(image.labels, palette),
        disagreement=_jpeg(heat),
        windows=image.windows,
        legend=list(zip(classes, palette, shares)),
    )


def shrink(image: np.ndarray, longest: int, interpolation: int = cv2.INTER_AREA) -> np.ndarray:
    """Scales an image `(H, W, ·)` down to at most `longest` pixels on its longest side."""
    height, width = image.shape[:2]
    scale = min(1.0, longest / max(height, width))
    size = max(1, round(width * scale)), max(1, round(height * scale))
    return cv2.resize(image, size, interpolation=interpolation)


def _jpeg(bgr: np.ndarray) -> str:
    encoded = cv2.imencode('.jpg', bgr, [cv2.IMWRITE_JPEG_QUALITY, 88])[1]
    return f'data:image/jpeg;base64,{base64.b64encode(encoded.tobytes()).decode()}'


def _palette_png(labels: np.ndarray, palette: Sequence[Sequence[int]]) -> str:
    picture, buffer = Image.fromarray(labels.astype(np.uint8)), io.BytesIO()
    picture.putpalette(full_palette(palette).tobytes())
    picture.save(buffer, format='PNG', transparency=255)  # the ignored pixels
    return f'data:image/png;base64,{base64.b64encode(buffer.getvalue()).decode()}'
