"""Exports masks of class ids as annotations that a labelling tool opens."""

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from mmseg_cct.datasets.files.images import read_mask
from mmseg_cct.datasets.files.labels import is_background

from .contours import TracedImage, trace_shapes
from .shapes import Colour
from .writers import coco, cvat, label_studio, labelme
from .writers.output import Export

_WRITERS = {
    'coco': coco.write,
    'cvat': cvat.write,
    'labelme': labelme.write,
    'label-studio': label_studio.write,
}


def export_masks(
    form: str,
    out: str | Path,
    masks: Mapping[str, Path],
    classes: Mapping[str, Colour],
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
    left_out = not background and next(filter(is_background, names), None)
    rest = names.index(left_out) if left_out else None
    # Each annotation of COCO covers its own pixels alone; the others say what lies on top.
    stacked = form != 'coco'

    def traced() -> Iterator[TracedImage]:
        for name, path in masks.items():
            labels = read_mask(path)
            shapes = trace_shapes(
                labels, names, tolerance=tolerance, min_area=min_area, rest=rest, stacked=stacked
            )
            yield TracedImage(name, labels.shape[::-1], shapes)
            progress()

    _WRITERS[form](Export(Path(out), classes, traced(), Path(folder)))
