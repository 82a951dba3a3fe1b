"""The page that shows a batch before somebody labels it, in one file that works offline."""

import hashlib
import io
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import PurePath
from typing import Any

import cv2
import numpy as np
from PIL import Image

from mmseg_cct.engine.visualization.label_maps import full_palette, is_tinted
from mmseg_cct.utils.templates import data_url, render
from mmseg_cct.utils.text import counted

from .windows import Window

_THUMBNAIL = 160  # longer side of a thumbnail, in pixels


@dataclass(frozen=True)
class BatchImage:
    """An image of a batch, with pictures at the size that the page shows."""

    name: PurePath  # path in the batch's folder of images
    rank: int  # by disagreement among all images, from 1
    score: float  # mean disagreement
    photo: np.ndarray = field(repr=False)  # (H, W, 3) uint8, RGB
    labels: np.ndarray = field(repr=False)  # predicted ids (H, W), 255 outside the windows
    disagreement: np.ndarray = field(repr=False)  # (h, w), at the size of the network's input
    size: tuple[int, int]  # width and height of the original image
    windows: list[Window] = field(default_factory=list)  # in its pixels; without any, all of it


def review_page(
    batch: Sequence[BatchImage],
    notes: Sequence[str],
    candidates: int,
    classes: Sequence[str],
    palette: Sequence[Sequence[int]],
) -> str:
    """Renders the page: image, prediction and disagreement of one image of the batch at a time.

    `notes` appear below the title; the batch was chosen from `candidates` images.
    """
    # One scale for all maps, without their outliers.
    highest = max((float(np.quantile(each.disagreement, 0.99)) for each in batch), default=0) or 1.0
    content = '\n'.join(f'{image.name} {image.score}' for image in batch)
    return render(
        'studies/review.html.jinja',
        title=f'Label next: {counted(len(batch), "image")}',
        notes=notes,
        candidates=candidates,
        highest=highest,
        # The marks of another batch in the same browser are not those of this one.
        key=f'mmseg_cct {hashlib.sha256(content.encode(errors="replace")).hexdigest()[:16]}',
        cases=[_case(image, classes, palette, highest) for image in batch],
    )


def _case(
    image: BatchImage, classes: Sequence[str], palette: Sequence[Sequence[int]], highest: float
) -> dict[str, Any]:
    ids = np.bincount(image.labels.ravel(), minlength=256)[: len(classes)]
    shares = 100 * ids / max(ids.sum(), 1)
    scaled = np.clip(255 * image.disagreement / highest, 0, 255).astype(np.uint8)
    heat = cv2.applyColorMap(scaled, cv2.COLORMAP_MAGMA)
    tinted = is_tinted(classes)
    return dict(
        name=str(image.name),
        rank=image.rank,
        score=f'{image.score:.3g}',
        width=image.size[0],
        height=image.size[1],
        photo=_jpeg(image.photo[..., ::-1]),
        thumbnail=_jpeg(shrink(image.photo, _THUMBNAIL)[..., ::-1]),
        labels=_palette_png(image.labels, palette, tinted),
        disagreement=_jpeg(heat),
        windows=image.windows,
        legend=list(zip(classes, palette, shares, tinted)),
    )


def shrink(image: np.ndarray, longest: int, interpolation: int = cv2.INTER_AREA) -> np.ndarray:
    """Scales an image `(H, W, ·)` down to at most `longest` pixels on its longest side."""
    height, width = image.shape[:2]
    scale = min(1.0, longest / max(height, width))
    size = max(1, round(width * scale)), max(1, round(height * scale))
    return cv2.resize(image, size, interpolation=interpolation)


def _jpeg(bgr: np.ndarray) -> str:
    encoded = cv2.imencode('.jpg', bgr, [cv2.IMWRITE_JPEG_QUALITY, 88])[1]
    return data_url(encoded.tobytes(), 'jpeg')


def _palette_png(labels: np.ndarray, palette: Sequence[Sequence[int]], tinted: np.ndarray) -> str:
    """Paints class ids; classes that are not `tinted` and ignored pixels are transparent."""
    picture, buffer = Image.fromarray(labels.astype(np.uint8)), io.BytesIO()
    picture.putpalette(full_palette(palette).tobytes())
    opacity = np.zeros(256, np.uint8)
    opacity[: len(tinted)] = 255 * tinted
    picture.save(buffer, format='PNG', transparency=opacity.tobytes())
    return data_url(buffer.getvalue())
