"""Plots of a report: training curves."""

from collections.abc import Sequence

from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from mmseg_cct.engine.figures import outer_legend

from ..run import Run

# What a panel shows, and the start of the keys of the log that it sums.
_PANELS = {
    'supervised loss Lₛ': 'decode.loss',
    'consistency loss Lᵤ': 'aux.consistency',
    'mIoU on val, %': 'mIoU',
}


def plot_curves(runs: Sequence[Run]) -> Figure:
    """Plots L_s, L_u and the mIoU of the validations, a colour a run.

    A panel leaves out the runs that did not log its value.
    """
    figure = Figure(figsize=(4 * len(_PANELS), 2.6), layout='constrained')
    for axes, (title, start) in zip(figure.subplots(1, len(_PANELS)).flat, _PANELS.items()):
        for index, run in enumerate(runs):
            # the main decoder may log several losses: L_s is their sum
            terms = [(v['step'], [v[k] for k in v if k.startswith(start)]) for v in run.scalars]
            points = [(step, sum(values)) for step, values in terms if values]
            if points:
                look = dict(marker='.') if len(points) < 20 else {}
                axes.plot(*zip(*points), color=f'C{index}', **look)
        axes.set_title(title, fontsize=10)
        axes.set_xlabel('iteration', fontsize=8)
        axes.tick_params(labelsize=8)
    names = [Line2D([], [], color=f'C{i}', label=run.name) for i, run in enumerate(runs)]
    outer_legend(figure, names)
    return figure
