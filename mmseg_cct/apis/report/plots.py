"""Plots of a report: training curves and IoU by class."""

import textwrap
from collections.abc import Mapping, Sequence

import numpy as np
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from mmseg_cct.apis.run import Run
from mmseg_cct.engine.visualization.figures import outer_legend
from mmseg_cct.utils.text import signed

from .scores import class_scores, mean_score

_LINE = 0.24  # inches for a class


def plot_curves(runs: Sequence[Run], columns: int = 3, measure: str = 'mIoU') -> Figure:
    """Plots logged curves: L_s, L_u, and a measure of the validations.

    A panel leaves out runs that did not log its value. Each run has a colour.
    """
    panels = {
        'supervised loss Lₛ': _supervised_loss,
        'consistency loss Lᵤ': lambda run: _values_of(run, 'aux.consistency'),
        f'{measure} on val, %': lambda run: _values_of(run, measure),
    }
    rows = -(-len(panels) // columns)
    figure = Figure(figsize=(4 * columns, 2.6 * rows), layout='constrained')
    for axes, (title, curve_of) in zip(figure.subplots(rows, columns).flat, panels.items()):
        for index, run in enumerate(runs):
            if points := curve_of(run):
                look = dict(marker='.') if len(points) < 20 else {}
                axes.plot(*zip(*points), color=f'C{index}', label=run.name, **look)
        axes.set_title(title, fontsize=10)
        axes.set_xlabel('iteration', fontsize=8)
        axes.tick_params(labelsize=8)
        if not title.startswith(measure):  # it moves within a few points
            axes.set_ylim(bottom=0)
        axes.spines[['top', 'right']].set_visible(False)
    outer_legend(figure, _run_legend([run.name for run in runs]))
    return figure


def plot_class_iou(iou: Mapping[str, np.ndarray], classes: Sequence[str]) -> Figure:
    """Plots IoU `(C,)` in [0, 1] by class, and the mean, one line each with a dot per run.

    The order is that of `class_scores`; for two runs, the difference is printed beside the line.
    Classes without a pixel, or at 0 in all runs, are listed below the plot.
    """
    folded: dict[str, list[str]] = {'at 0': [], 'without a pixel': []}
    shown = [mean_score(iou)]
    for score in class_scores(iou, classes):
        highest = max((value for value in score.values if value is not None), default=None)
        if highest:
            shown.append(score)
        else:
            folded['at 0' if highest == 0 else 'without a pixel'].append(score.name)
    figure = Figure(figsize=(6, _LINE * len(shown) + 0.75), layout='constrained')
    axes = figure.subplots()
    for line, score in enumerate(shown):
        drawn = [value for value in score.values if value is not None]
        ends = [min(drawn) if len(iou) > 1 else 0, max(drawn)]
        axes.plot(ends, [line, line], color='0.75', linewidth=2, zorder=1)
        if score.difference is None:
            text, colour = f'{max(drawn):.1f}', '0.3'
        else:
            text, colour = signed(score.difference), f'C{int(score.difference > 0)}'
        axes.annotate(
            text, (1, line), (4, 0), ('axes fraction', 'data'), 'offset points',
            color=colour, fontsize=9, va='center',
        )  # fmt: skip
    values = np.array([score.values for score in shown], float)  # None becomes nan
    for index, by_run in enumerate(values.T):
        axes.scatter(by_run, range(len(shown)), 36, color=f'C{index}', zorder=2 + index)
    axes.axhline(0.5, color='0.6', linewidth=0.8)
    axes.set_yticks(range(len(shown)), [score.name for score in shown], fontsize=9)
    axes.set_ylim(len(shown) - 0.4, -0.6)
    if np.nanmin(values) < 20:
        axes.set_xlim(-1, max(5, axes.get_xlim()[1]))
    axes.grid(axis='x', alpha=0.3)
    axes.tick_params(axis='x', labelsize=8)
    axes.spines[['top', 'right', 'left']].set_visible(False)
    axes.tick_params(axis='y', length=0)
    label = ['IoU on the test set, %']
    for title, names in folded.items():
        if names:
            label += textwrap.wrap(f'{title}: {", ".join(names)}', 85)
    axes.set_xlabel('\n'.join(label), fontsize=9)
    figure.set_figheight(figure.get_figheight() + 0.16 * (len(label) - 1))
    outer_legend(figure, _run_legend(list(iou)), 'outside upper center')
    return figure


def _run_legend(names: Sequence[str]) -> list[Line2D]:
    return [
        Line2D([], [], color=f'C{i}', label=name, linestyle='', marker='o')
        for i, name in enumerate(names)
    ]


def _supervised_loss(run: Run) -> list[tuple[int, float]]:
    """Returns the curve of L_s, the sum of the losses that the main decoder logs."""
    terms = [
        (values['step'], [value for key, value in values.items() if key.startswith('decode.loss')])
        for values in run.scalars
    ]
    return [(step, sum(losses)) for step, losses in terms if losses]


def _values_of(run: Run, name: str) -> list[tuple[int, float]]:
    return [(values['step'], values[name]) for values in run.scalars if name in values]
