"""Plots of a report: training curves, IoU by class, and predictions beside the truth."""

import itertools
import textwrap
from collections.abc import Callable, Mapping, Sequence

import numpy as np
from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine
from matplotlib.lines import Line2D

from mmseg_cct.visualization.figures import LINE_STYLES, legend_below
from mmseg_cct.visualization.label_maps import class_legend, paint

from .runs import Picture, Run

_PICTURE_AREA = 7.0  # square inches
_TITLE_CHARACTER = 0.1  # inches

Curves = dict[str, tuple[list[int], list[float]]]


def plot_curves(runs: Sequence[Run]) -> Figure:
    """Plots logged curves: L_s, L_u, ramps, and mIoU on the validation set.

    A panel leaves out runs that did not log its value.
    """
    panels = {
        'supervised loss L_s': _values_starting('decode.loss'),
        'consistency loss L_u': _values_starting('aux.consistency'),
        'ramps': _values_starting('decode_head.', 'auxiliary_head.', 'loss_consistency.'),
        'mIoU on val, %': _values_starting('mIoU'),
    }
    figure = Figure(figsize=(12, 3), layout='constrained')
    ramps = sorted({key for run in runs for key in panels['ramps'](run)})
    styles = dict(zip(ramps, itertools.cycle(LINE_STYLES)))
    for axes, (title, curves_of) in zip(figure.subplots(1, len(panels)), panels.items()):
        for index, run in enumerate(runs):
            for key, (steps, values) in curves_of(run).items():
                style = styles.get(key, '-')
                axes.plot(steps, values, color=f'C{index}', linestyle=style, label=run.name)
        axes.set_title(title, fontsize=10)
        axes.set_xlabel('iteration', fontsize=8)
        axes.tick_params(labelsize=8)
        axes.set_ylim(bottom=0)
    handles = [Line2D([], [], color=f'C{i}', label=run.name) for i, run in enumerate(runs)]
    handles += [Line2D([], [], color='0.4', linestyle=styles[key], label=key) for key in ramps]
    legend_below(figure, handles)
    return figure


def plot_class_bars(iou: Mapping[str, np.ndarray], classes: Sequence[str]) -> Figure:
    """Plots IoU `(C,)` in [0, 1] by class, and the mean, as groups of bars with one bar a run."""
    names = [*classes, 'mean']
    figure = Figure(figsize=(8, 0.28 * len(names) * (len(iou) + 0.7) + 0.8), layout='constrained')
    axes = figure.subplots()
    thickness = 0.8 / len(iou)
    for index, (name, values) in enumerate(iou.items()):
        percent = 100 * np.append(values, np.nanmean(values))
        places = np.arange(len(names)) + (index - (len(iou) - 1) / 2) * thickness
        bars = axes.barh(places, np.nan_to_num(percent), thickness, label=name, color=f'C{index}')
        labels = ['' if np.isnan(value) else f'{value:.1f}' for value in percent]
        axes.bar_label(bars, labels, padding=2, fontsize=7)
    axes.set_yticks(range(len(names)), names, fontsize=9)
    axes.invert_yaxis()
    axes.set_xlim(0, 105)
    axes.set_xlabel('IoU on the test set, %', fontsize=9)
    axes.spines[['top', 'right']].set_visible(False)
    legend_below(figure, axes.get_legend_handles_labels()[0])
    return figure


def plot_grid(
    pictures: Mapping[str, Sequence[Picture]],
    classes: Sequence[str],
    palette: Sequence[Sequence[int]],
) -> Figure:
    """Plots a row for each image: the image, the truth and the prediction of each run.

    The runs have the same images, and the palette is C colours, RGB in [0, 255]. The layout follows
    the images' shape; a legend of the classes is below.
    """
    rows = list(zip(*pictures.values()))
    titles = ['image', 'truth', *pictures]
    height, width = rows[0][0].image.shape[:2]
    ratio = width / height
    tile = (_PICTURE_AREA * ratio) ** 0.5, (_PICTURE_AREA / ratio) ** 0.5
    figure = Figure(
        figsize=(tile[0] * len(titles), tile[1] * len(rows) + 0.35),
        layout=ConstrainedLayoutEngine(w_pad=0.02, h_pad=0.02, wspace=0, hspace=0),
    )
    for line, row in zip(figure.subplots(len(rows), len(titles), squeeze=False), rows):
        painted = [paint(p.prediction, palette) for p in row]
        for axes, shown in zip(line, [row[0].image, paint(row[0].truth, palette), *painted]):
            axes.imshow(shown, interpolation='nearest', aspect='auto')
            axes.set_axis_off()
    lines = [textwrap.wrap(title, max(1, int(tile[0] / _TITLE_CHARACTER))) for title in titles]
    figure.set_figheight(figure.get_figheight() + 0.2 * (max(map(len, lines)) - 1))
    for axes, title in zip(figure.axes, lines):
        axes.set_title('\n'.join(title), fontsize=12)
    legend_below(figure, class_legend(classes, palette))
    return figure


def _values_starting(*prefixes: str) -> Callable[[Run], Curves]:
    """Makes a function that collects a run's curves by the prefixes of their names."""

    def curves(run: Run) -> Curves:
        names = {key for values in run.scalars for key in values if key.startswith(prefixes)}
        points = {
            name: [(values['step'], values[name]) for values in run.scalars if name in values]
            for name in sorted(names)
        }
        return {
            name: ([step for step, _ in pairs], [value for _, value in pairs])
            for name, pairs in points.items()
        }

    return curves
