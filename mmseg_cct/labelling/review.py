"""The page that shows a batch before somebody labels it, in one file that works offline."""

import hashlib
import io
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import PurePath

import cv2
import numpy as np
from PIL import Image

from mmseg_cct.engine.visualization import full_palette, is_tinted
from mmseg_cct.utils.templates import Table, data_url, render

LARGEST = 1280  # longer side of a picture in a page, in pixels
_THUMBNAIL = 160  # longer side of a thumbnail, in pixels


@dataclass(frozen=True)
class PageImage:
    """What a page shows of an image, one picture per layer, all at the size of the page."""

    name: PurePath  # below the folder of images
    size: tuple[int, int]  # width and height of the original image
    photo: np.ndarray = field(repr=False)  # (H, W, 3) uint8, RGB
    detail: str = ''  # said beside the name
    # layers over the photo: style of the page, caption, address of the picture
    layers: Sequence[tuple[str, str, str]] = field(default=(), repr=False)
    legend: Sequence[tuple[str, Sequence[int], str]] = ()  # class, colour, share in percent
    part: str = ''  # of the page, which has a button for each
    # (h, w), from 0: of the decoders, or of a preview; the last layer
    doubt: np.ndarray | None = field(default=None, repr=False)


def image_page(
    title: str,
    note: str,
    images: Sequence[PageImage],
    caption: str = '',
    summary: Table | None = None,
) -> str:
    """Renders a page that shows one image at a time.

    `note` appears below the title and `caption` says whose doubt is shown. A `summary` is a table
    above the images, which then cannot be marked as done or to skip, and whose doubts end at 1.
    """
    # else one scale for all maps, without their outliers
    quantiles = [float(np.quantile(i.doubt, 0.99)) for i in images if i.doubt is not None]
    highest = 1.0 if summary else max(quantiles, default=0) or 1.0
    content = '\n'.join(f'{image.name} {image.detail}' for image in images)
    cases = [
        dict(
            name=str(image.name),
            detail=image.detail,
            width=image.size[0],
            height=image.size[1],
            photo=_jpeg(image.photo[..., ::-1]),
            thumbnail=_jpeg(shrink(image.photo, _THUMBNAIL)[..., ::-1]),
            layers=[*image.layers, *_doubt_layers(caption, image.doubt, highest)],
            legend=image.legend,
        )
        for image in images
    ]
    parts = {image.part: index for index, image in reversed([*enumerate(images)]) if image.part}
    return render(
        'labelling/review.html.jinja',
        title=title,
        note=note,
        highest=highest,
        parts=dict(reversed(parts.items())),
        summary=summary,
        # The marks of another batch in the same browser are not those of this one.
        key=f'mmseg_cct {hashlib.sha256(content.encode(errors="replace")).hexdigest()[:16]}',
        cases=cases,
    )


def label_layer(
    caption: str, labels: np.ndarray, classes: Sequence[str], palette: Sequence[Sequence[int]]
) -> tuple[str, str, str]:
    """Makes a layer of class ids `(H, W)` in their colours."""
    return 'labels', caption, _outlined(labels, palette, is_tinted(classes))


def label_legend(
    labels: np.ndarray,
    classes: Sequence[str],
    palette: Sequence[Sequence[int]],
    shown: np.ndarray | None = None,
) -> list[tuple[str, Sequence[int], str]]:
    """Lists the classes of ids `(H, W)`, and of others `shown`, with their shares in percent."""
    present = set(np.unique(labels if shown is None else np.append(labels, shown)).tolist())
    shares = 100 * np.bincount(labels.ravel(), minlength=256) / labels.size
    return [
        (name, color, '< 0.1' if 0 < share < 0.1 else f'{share:.1f}')
        for index, (name, color, share) in enumerate(zip(classes, palette, shares))
        if index in present
    ]


def shrink(image: np.ndarray, longest: int, interpolation: int = cv2.INTER_AREA) -> np.ndarray:
    """Scales an image `(H, W, ·)` down to at most `longest` pixels on its longest side."""
    height, width = image.shape[:2]
    scale = min(1.0, longest / max(height, width))
    size = max(1, round(width * scale)), max(1, round(height * scale))
    return cv2.resize(image, size, interpolation=interpolation)


def _doubt_layers(
    caption: str, doubt: np.ndarray | None, highest: float
) -> Iterator[tuple[str, str, str]]:
    """Makes the layer of doubts `(h, w)`, of which the highest and more are the brightest."""
    if doubt is not None:
        scaled = np.clip(255 * doubt / highest, 0, 255).astype(np.uint8)
        yield 'doubt', caption, _jpeg(cv2.applyColorMap(scaled, cv2.COLORMAP_MAGMA))


def _jpeg(bgr: np.ndarray) -> str:
    encoded = cv2.imencode('.jpg', bgr, [cv2.IMWRITE_JPEG_QUALITY, 88])[1]
    return data_url(encoded.tobytes(), 'jpeg')


def _outlined(labels: np.ndarray, palette: Sequence[Sequence[int]], tinted: np.ndarray) -> str:
    """Paints class ids with white outlines; inside, classes that are not `tinted` are transparent.

    Without the outlines, a grey class on a photo would look like one without a colour.
    """
    rgba = np.zeros((*labels.shape, 4), np.uint8)
    rgba[..., :3] = full_palette(palette)[labels]
    opacity = np.zeros(256, np.uint8)
    opacity[: len(tinted)] = 255 * tinted
    rgba[..., 3] = opacity[labels]
    edge = np.zeros(labels.shape, bool)
    edge[1:] |= labels[1:] != labels[:-1]
    edge[:, 1:] |= labels[:, 1:] != labels[:, :-1]
    rgba[edge] = 255
    buffer = io.BytesIO()
    Image.fromarray(rgba).save(buffer, format='PNG')
    return data_url(buffer.getvalue())
