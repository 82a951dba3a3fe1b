"""Ablation over methods and numbers of labels, as in Figures 5 and 6 of the paper.

The paper's grid has a single perturbation, and all of them, with K decoders each; all other
variants are methods in `configs/methods`.
"""

import csv
import io
import re
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from statistics import mean, stdev
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from mmengine.config import Config

from mmseg_cct.config.compose import find_bank, read_method, with_perturbations
from mmseg_cct.engine.figures import outer_legend, png_bytes
from mmseg_cct.errors import UserError
from mmseg_cct.utils.files import require_own_folder, write_atomic, write_text
from mmseg_cct.utils.templates import render
from mmseg_cct.utils.text import counted

from .results import (
    Result,
    collect,
    collect_domains,
    gains_table,
    label_sets,
    results_table,
    select,
    title_of_labels,
)
from .study import Overlay

FIGURE = 'perturbations.png'
BASELINE, ABCE_BASELINE = 'supervised', 'supervised-abce'
FULL = ('full', 'full_abce')  # the groups of complete CCT in the grid


def grid_methods(config: Config, num_decoders: Sequence[int]) -> dict[str, Overlay]:
    """Builds the overlays of the paper's grid: the baselines, and three kinds for each K.

    The baselines are `supervised` and, for ab-CE, `supervised-abce`; the kinds are
    `<perturbation>_k<K>`, `full_k<K>` and `full_abce_k<K>`, with K decoders for each perturbation.
    """
    bank = find_bank(config)
    if bank is None:
        problem = 'model.auxiliary_head has no PerturbedDecoderBank'
        raise UserError(config.filename, problem, 'a config of CCT')
    names = list(with_perturbations(bank)['perturbations'])
    methods: dict[str, Overlay] = {name: read_method(name) for name in (BASELINE, ABCE_BASELINE)}
    abce = read_method('cct-abce')
    for k in num_decoders:
        # the bank stays complete: a perturbation of 0 decoders is switched off
        for name in names:
            methods[f'{name}_k{k}'] = _decoders({**dict.fromkeys(names, 0), name: k})
        full = methods[f'full_k{k}'] = _decoders(dict.fromkeys(names, k))
        methods[f'full_abce_k{k}'] = {**abce, 'model': {**abce['model'], **full['model']}}
    return methods


def _decoders(numbers: Mapping[str, int]) -> Overlay:
    perturbations = {name: dict(num_decoders=number) for name, number in numbers.items()}
    return dict(model=dict(auxiliary_head=dict(perturbations=perturbations)))


def write_ablation(out: Path) -> list[str]:
    """Writes `results.csv`, `ablation.md` and the figure of the grid.

    Returns a line for each comparison with the baseline: its mean gain and the verdict.
    """
    results = collect(out)
    methods = ordered_methods(results)
    lines = io.StringIO()
    csv.writer(lines).writerows([Result._fields, *results])
    write_text(out / 'results.csv', lines.getvalue())
    # ab-CE changes the supervised loss, so what it adds to CCT needs a baseline of its own
    abce = [m for m in methods if m == 'cct-abce' or parse_grid_name(m)[0] == 'full_abce']
    gains = {
        'the supervised baseline': gains_table(results, methods, BASELINE),
        'the supervised baseline with ab-CE': gains_table(results, abce, ABCE_BASELINE),
    }
    gains = {baseline: table for baseline, table in gains.items() if table.rows}
    has_grid = bool(_groups(results))
    if has_grid:
        write_atomic(out / FIGURE, png_bytes(plot_perturbations(results), 120))
    page = render(
        'studies/ablation.md.jinja',
        seeds=sorted({result.seed for result in results}),
        results=results_table(results, methods),
        domains={domain: results_table(r, methods) for domain, r in collect_domains(out).items()},
        gains=gains,
        figure=FIGURE if has_grid else None,
    )
    write_text(out / 'ablation.md', page)
    return [
        f'{method}, {title_of_labels(labels) or "the labels of the config"}: '
        f'{mean_gain} {half} mIoU over {baseline}: {verdict}'.replace('  ', ' ')
        for baseline, table in gains.items()
        for method, labels, mean_gain, half, _, verdict in table.rows
    ]


def run_study(out: Path, execute: Callable[[], Sequence[str]] | None) -> int:
    """Runs what is left of a study and writes its tables, also after Ctrl-C.

    `execute` returns a line for each run that is still unfinished; None only collects. Returns the
    exit code: 0, 1 if a run failed, or 130 after Ctrl-C.
    """
    code = 0
    require_own_folder(out, '*/*/seed*/config*.py')  # config.tmp.py if the first is unfinished
    if execute is None and not out.is_dir():
        raise UserError(out, 'no such folder', 'that of a study')
    try:
        if failures := execute() if execute else ():
            code = 1
            number = counted(len(failures), 'unfinished run')
            print(f'{number}:', *failures, sep='\n', file=sys.stderr)
    except KeyboardInterrupt:
        code = 130
        print('stopped; the same command goes on from here', file=sys.stderr)
        if not out.is_dir():  # before the first run was prepared
            return code
    print(*write_ablation(out), f'wrote {out / "ablation.md"}', sep='\n')
    return code


def parse_grid_name(method: str) -> tuple[str | None, int]:
    """Parses `GROUP_kK`, a name of the grid, into group and K; (None, 0) for other methods."""
    match = re.fullmatch(r'(.+)_k(\d+)', method)
    return (match[1], int(match[2])) if match else (None, 0)


def ordered_methods(results: Sequence[Result]) -> list[str]:
    """Lists methods in the paper's order: baselines, perturbations by K, full, then others."""
    groups = _groups(results)

    def key(method: str) -> tuple[int, int, int, str]:
        group, k = parse_grid_name(method)
        if method in (BASELINE, ABCE_BASELINE):
            return (0, 0, 0, method)
        return (2, 0, 0, method) if group is None else (1, groups.index(group), k, method)

    return sorted({result.method for result in results}, key=key)


def plot_perturbations(results: Sequence[Result]) -> Figure:
    """Plots mIoU by perturbation and K, one panel per number of labels, as in Figure 5."""
    groups = _groups(results)
    ks = sorted({parse_grid_name(result.method)[1] for result in results} - {0})
    panels = label_sets(results)
    figure = Figure(figsize=(1.1 * len(groups) + 1.5, 2.6 * len(panels)), layout='constrained')
    for axes, labels in zip(figure.subplots(len(panels), squeeze=False)[:, 0], panels):
        bars = {f'K={k}': [select(results, f'{g}_k{k}', labels) for g in groups] for k in ks}
        _plot_bars(axes, groups, bars, select(results, BASELINE, labels))
        axes.set_title(title_of_labels(labels), fontsize=9)
    # not every panel has a baseline
    entries = [zip(*axes.get_legend_handles_labels()) for axes in figure.axes]
    legend = {label: handle for panel in entries for handle, label in panel}
    outer_legend(figure, list(legend.values()))
    return figure


def _plot_bars(
    axes: Axes,
    titles: Sequence[str],
    bars: Mapping[str, Sequence[Sequence[float]]],
    baseline: Sequence[float] = (),
) -> None:
    """Plots groups of bars by label: means over the seeds, with a dot for each seed.

    A group without seeds has no bar. The baseline is a line, its standard deviation a band.
    """
    width = 0.8 / len(bars)
    for index, (label, groups) in enumerate(bars.items()):
        shift = (index - (len(bars) - 1) / 2) * width
        drawn = {position + shift: values for position, values in enumerate(groups) if values}
        look: dict[str, Any] = dict(label=label, color=f'C{index}', alpha=0.6)
        axes.bar(list(drawn), list(map(mean, drawn.values())), width, **look)
        for position, values in drawn.items():
            axes.scatter([position] * len(values), values, 10, color='0.2', zorder=3)
    if baseline:
        axes.axhline(mean(baseline), color='0.3', linestyle='--', label='baseline')
    if len(baseline) > 1:
        low, high = mean(baseline) - stdev(baseline), mean(baseline) + stdev(baseline)
        axes.axhspan(low, high, color='0.3', alpha=0.15)
    axes.set_xticks(range(len(titles)), titles, fontsize=8, rotation=20, ha='right')
    axes.set_xlim(-0.6, len(titles) - 0.4)  # the same in all panels, with or without a bar
    axes.set_ylabel('mIoU, %')
    axes.tick_params(axis='y', labelsize=8)
    # Methods differ by a few points, so the axis starts a little below the lowest value.
    shown = [value for groups in bars.values() for values in groups for value in values]
    axes.set_ylim(bottom=0.8 * min([*shown, *baseline], default=0.0))


def _groups(results: Sequence[Result]) -> list[str]:
    """Lists the groups of the grid: the paper's perturbations, custom ones, and full."""
    cells = (parse_grid_name(result.method) for result in results)
    groups = {group for group, _ in cells if group is not None}
    paper = with_perturbations({})['perturbations']
    order = [*paper, *sorted(groups - {*paper, *FULL}), *FULL]
    return [group for group in order if group in groups]
