"""Plots of a report: training curves and IoU by class."""

from collections.abc import Callable, Sequence

import numpy as np
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from mmseg_cct.engine.visualization.figures import outer_legend
from mmseg_cct.utils.text import signed

from ..run import Run
from .scores import Score

_LINE = 0.24  # inches for a class


def plot_curves(runs: Sequence[Run], measure: str = 'mIoU') -> Figure:
    """Plots logged curves: L_s, L_u, and a measure of the validations.

    A panel leaves out runs that did not log its value. Each run has a colour.
    """
    panels: dict[str, Callable[[str], bool]] = {
        'supervised loss Lₛ': lambda key: key.startswith('decode.loss'),
        'consistency loss Lᵤ': lambda key: key == 'aux.consistency',
        f'{measure} on val, %': lambda key: key == measure,
    }
    figure = Figure(figsize=(4 * len(panels), 2.6), layout='constrained')
    for axes, (title, is_shown) in zip(figure.subplots(1, len(panels)).flat, panels.items()):
        for index, run in enumerate(runs):
            # L_s is the sum of the losses that the main decoder logs
            terms = [(v['step'], [v[key] for key in v if is_shown(key)]) for v in run.scalars]
            if points := [(step, sum(values)) for step, values in terms if values]:
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


def plot_class_iou(scores: Sequence[Score], mean: Score, runs: Sequence[str]) -> Figure:
    """Plots the mean and the IoU by class in the order of `scores`, with a dot for each run.

    For two runs, the difference is printed beside the line. Classes that no run finds are left out.
    """
    shown = [mean, *(score for score in scores if any(score.values))]
    figure = Figure(figsize=(6, _LINE * len(shown) + 0.75), layout='constrained')
    axes = figure.subplots()
    for line, score in enumerate(shown):
        drawn = [value for value in score.values if value is not None]
        ends = [min(drawn) if len(runs) > 1 else 0, max(drawn)]
        axes.plot(ends, [line, line], color='0.75', linewidth=2, zorder=1)
        text, colour = f'{max(drawn):.1f}', '0.3'
        if score.difference is not None:
            text = signed(score.difference)
        if score.difference:  # in the colour of the better run
            colour = f'C{int(score.difference > 0)}'
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
    axes.set_xlabel('IoU on the test set, %', fontsize=9)
    outer_legend(figure, _run_legend(runs), 'outside upper center')
    return figure


def _run_legend(names: Sequence[str]) -> list[Line2D]:
    return [
        Line2D([], [], color=f'C{i}', label=name, linestyle='', marker='o')
        for i, name in enumerate(names)
    ]
