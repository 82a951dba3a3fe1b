"""Contact sheet of a batch: image, prediction and disagreement of each in a row."""

from collections.abc import Sequence

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from mmseg_cct.visualization.figures import bounded, outer_legend, png_bytes
from mmseg_cct.visualization.label_maps import class_legend, paint

from .batch_image import BatchImage, highest_disagreement

_COLUMN_WIDTH = 3.2  # inches
_MOST = 40  # rows; viewers do not open larger pictures


def contact_sheet(
    batch: list[BatchImage], classes: Sequence[str], palette: Sequence[Sequence[int]]
) -> bytes:
    """Draws a PNG of the first 40 images, with one scale for all disagreement maps."""
    batch = batch[:_MOST]
    width, height = batch[0].size
    row_height = _COLUMN_WIDTH * bounded(height / width) + 0.3
    figure = Figure(figsize=(3 * _COLUMN_WIDTH, row_height * len(batch) + 1.0), dpi=100)
    figure.set_layout_engine('constrained', w_pad=0.03, h_pad=0.03, wspace=0, hspace=0)
    axes = figure.subplots(len(batch), 3, squeeze=False)
    highest = highest_disagreement(batch)
    for number, (row, image) in enumerate(zip(axes, batch), 1):
        # all three have the axes of the full-size image
        extent = (0, image.size[0], image.size[1], 0)
        row[0].imshow(image.photo, extent=extent)
        row[1].imshow(paint(image.labels, palette), extent=extent)  # shrunk, so edges are smooth
        shown = row[2].imshow(image.disagreement, cmap='magma', vmin=0, vmax=highest, extent=extent)
        name = _tail(str(image.name.with_suffix('')))
        row[0].set_title(f'{number}. {name}', fontsize=8, loc='left')
        row[1].set_title('main prediction', fontsize=8, loc='left')
        row[2].set_title(
            f'disagreement, mean {image.score:.3g}, rank {image.rank}', fontsize=8, loc='left'
        )
        for axis in row:
            axis.set_axis_off()
            _draw_windows(axis, image)
    label = 'disagreement, all rows'
    figure.colorbar(
        shown, ax=axes, location='top', aspect=60, shrink=0.6, pad=0.05 / len(batch), label=label
    )
    outer_legend(figure, class_legend(classes, palette))
    return png_bytes(figure)


def _draw_windows(axis: Axes, image: BatchImage) -> None:
    for left, top, width, height in image.windows:
        axis.add_patch(
            Rectangle((left, top), width, height, fill=False, edgecolor='white', linewidth=1)
        )


def _tail(name: str) -> str:
    return name if len(name) <= 30 else f'…{name[-29:]}'
