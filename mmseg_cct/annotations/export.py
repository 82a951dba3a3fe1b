"""Exports masks of class ids as annotations that a labelling tool opens."""

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from mmseg_cct.datasets.files.images import read_mask
from mmseg_cct.datasets.files.labels import is_background

from .contours import TracedImage, trace_shapes
from .shapes import Color
from .writers import coco, cvat, label_studio, labelme
from .writers.output import Export

WRITERS = {
    'coco': coco.write,
    'cvat': cvat.write,
    'labelme': labelme.write,
    'label-studio': label_studio.write,
}


def export_masks(
    export_format: str,
    out: str | Path,
    masks: Mapping[str, Path],
    classes: Mapping[str, Color],
    folder: str | Path,
    *,
    background: bool = False,
    tolerance: float = 1.0,
    min_area: int = 10,
    progress: Callable[[], object] = lambda: None,
) -> None:
    """Writes masks in one of `writers.FORMATS`.

    `masks` holds the mask of each image by the image's path relative to `folder`; ids are in the
    order of `classes`. Without `background`, undrawn pixels are the background class; with it, that
    class is drawn and undrawn pixels are to be ignored. Outlines move by up to `tolerance` pixels,
    and regions of fewer pixels than `min_area` become part of their surroundings. `progress` is
    called after each image.

    Raises:
        UserError: If one of the files exists with other contents.
    """
    names = list(classes)
    undrawn_name = None if background else next(filter(is_background, names), None)
    undrawn = names.index(undrawn_name) if undrawn_name else None
    # Each annotation of COCO covers its own pixels alone; the others say what lies on top.
    stacked = export_format != 'coco'

    def traced() -> Iterator[TracedImage]:
        for name, path in masks.items():
            labels = read_mask(path)
            shapes = trace_shapes(
                labels, names,
                tolerance=tolerance, min_area=min_area, undrawn=undrawn, stacked=stacked,
            )  # fmt: skip
            yield TracedImage(name, labels.shape[::-1], shapes)
            progress()

    WRITERS[export_format](Export(Path(out), classes, traced(), Path(folder)))
