"""Plots of a report: training curves and IoU by class."""

import itertools
import textwrap
from collections.abc import Callable, Mapping, Sequence

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from mmseg_cct.utils.text import signed
from mmseg_cct.visualization.figures import outer_legend

from .finished_runs import Run
from .scores import class_scores, mean_score

_LINE = 0.24  # inches for a class
_SYMBOLS = {
    'auxiliary_head.loss_consistency.loss_weight': 'ωᵤ, weight of Lᵤ',
    'loss_consistency.loss_weight': 'ωᵤ, weight of Lᵤ',
    'auxiliary_head.loss_weak.loss_weight': 'weight of L_w',
    'decode_head.loss_decode.0.progress': 'progress of ab-CE',
}

Curves = dict[str, tuple[list[int], list[float]]]


def plot_curves(runs: Sequence[Run], columns: int = 4, measure: str = 'mIoU') -> Figure:
    """Plots logged curves: L_s, L_u, ramps, and a measure of the validations.

    A panel leaves out runs that did not log its value. Each run has a colour. Ramps have colours of
    their own, because runs usually share them.
    """
    panels = {
        'supervised loss Lₛ': _supervised_loss,
        'consistency loss Lᵤ': _values_starting('aux.consistency'),
        f'{measure} on val, %': _values_starting(measure),
        'ramps': _values_starting('decode_head.', 'auxiliary_head.', 'loss_consistency.'),
    }
    rows = -(-len(panels) // columns)
    figure = Figure(figsize=(3 * columns, 2.6 * rows), layout='constrained')
    for axes, (title, curves_of) in zip(figure.subplots(rows, columns).flat, panels.items()):
        if title == 'ramps':
            _plot_ramps(axes, {run.name: curves_of(run) for run in runs})
        else:
            for index, run in enumerate(runs):
                for curve in curves_of(run).values():
                    axes.plot(*curve, color=f'C{index}', label=run.name, **_look(curve))
        axes.set_title(title, fontsize=10)
        axes.set_xlabel('iteration', fontsize=8)
        axes.tick_params(labelsize=8)
        if not title.startswith(measure):  # it moves within a few points
            axes.set_ylim(bottom=0)
        axes.spines[['top', 'right']].set_visible(False)
    outer_legend(figure, _run_legend([run.name for run in runs]))
    return figure


def _plot_ramps(axes: Axes, by_run: Mapping[str, Curves]) -> None:
    """Plots each ramp once or, where the runs differ, once per run with its name in the label."""
    colours = itertools.cycle(matplotlib.colormaps['Dark2'].colors)  # type: ignore[attr-defined]
    for key in sorted({key for curves in by_run.values() for key in curves}):
        curves: Curves = {run: found[key] for run, found in by_run.items() if key in found}
        symbol = _SYMBOLS.get(key, key)
        first, *others = curves.values()
        if all(curve == first for curve in others):
            curves = {'': first}
        for run, curve in curves.items():
            label = f'{symbol}, {run}' if run else symbol
            axes.plot(*curve, color=next(colours), label=label, **_look(curve))
    if axes.lines:
        axes.legend(fontsize=8, frameon=False)


def _look(curve: tuple[list[int], list[float]]) -> dict:
    """Returns the style of a curve: markers if it has few points."""
    return dict(marker='.') if len(curve[0]) < 20 else {}


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


def _supervised_loss(run: Run) -> Curves:
    """Returns the curve of L_s, the sum of the losses that the main decoder logs."""
    terms = [
        (values['step'], [value for key, value in values.items() if key.startswith('decode.loss')])
        for values in run.scalars
    ]
    points = [(step, sum(losses)) for step, losses in terms if losses]
    return {'L_s': ([step for step, _ in points], [loss for _, loss in points])} if points else {}


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
