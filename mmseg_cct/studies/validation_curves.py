"""Validation curves: mIoU on the validation set during training."""

from collections.abc import Sequence
from pathlib import Path
from statistics import mean

from matplotlib.figure import Figure

from mmseg_cct.analysis.finished_runs import read_scalars
from mmseg_cct.visualization.figures import LINE_STYLES, outer_legend

from .study import Result, label_order, title_of_labels

# By method and labelled set: for each seed the (iteration, mIoU in %) of its validations.
Curves = dict[tuple[str, str], list[list[tuple[int, float]]]]


def read_validations(out: Path, results: Sequence[Result]) -> Curves:
    """Reads validation curves from the logs of the finished runs that validated at least once."""
    curves: Curves = {}
    for run in results:
        log = read_scalars(out / run.method / run.labels / f'seed{run.seed}' / 'train')
        scores = [(values['step'], values.get('mIoU', values.get('mIoU_avg'))) for values in log]
        if validations := [(step, miou) for step, miou in scores if miou is not None]:
            curves.setdefault((run.method, run.labels), []).append(validations)
    return curves


def plot_validations(curves: Curves, titles: dict[str, str]) -> Figure:
    """Plots runs as thin lines, means over seeds as thick ones; one panel per labelled set.

    The legend lists the methods in the order of `titles`.
    """
    panels = sorted({labels for _, labels in curves}, key=label_order)
    figure = Figure(figsize=(3.2 * len(panels) + 1.2, 3.4), layout='constrained')
    for axes, panel in zip(figure.subplots(1, len(panels), squeeze=False, sharey=True)[0], panels):
        for index, (method, title) in enumerate(titles.items()):
            seeds = curves.get((method, panel), [])
            style = LINE_STYLES[index // 10 % len(LINE_STYLES)]  # a new style every ten colours
            look = dict(color=f'C{index}', linestyle=style)
            for validations in seeds if len(seeds) > 1 else []:
                axes.plot(*zip(*validations), **look, alpha=0.35, linewidth=0.8)
            # the mean covers the iterations at which all seeds validated
            runs = list(map(dict, seeds))
            shared = sorted(set.intersection(*map(set, runs))) if runs else []
            axes.plot(
                shared,
                [mean(run[step] for run in runs) for step in shared],
                **look,
                marker='.',
                label=title,
            )
        axes.set_title(title_of_labels(panel), fontsize=9)
        axes.set_xlabel('iteration', fontsize=8)
        axes.tick_params(labelsize=8)
    figure.supylabel('mIoU on the validation set, %', fontsize=8)
    outer_legend(figure, axes.get_legend_handles_labels()[0])
    return figure
