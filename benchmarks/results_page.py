#!/usr/bin/env python
"""Writes the tables of README.md, docs/results.md and configs/cct/README.md from docs/results.csv.

A table stands between `<!-- table KIND ... -->` and `<!-- end -->`; the line under it, which names
what its verdicts are corrected over, is written with it. Gains are of pairs of runs with the
same seed, intervals by the spread that the cells of a table have in common; `Gain` has the rule
for p.

Examples:
    python benchmarks/results_page.py
    python benchmarks/results_page.py --add work_dirs/idd_lite --data-set idd_lite --split val
"""

from __future__ import annotations

import argparse
import csv
import datetime
import io
import re
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from statistics import mean, variance
from typing import NamedTuple, get_type_hints

from scipy.stats import f as fisher
from scipy.stats import t as student

from mmseg_cct.config.load import read_config
from mmseg_cct.studies.execution import StudyRun
from mmseg_cct.studies.results import LEVEL, collect, holm, p_value
from mmseg_cct.utils.templates import markdown_table
from mmseg_cct.utils.text import signed

DOCS = Path(__file__).resolve().parents[1] / 'docs'
ROOT = DOCS.parent
CSV = DOCS / 'results.csv'
PAGES = (ROOT / 'README.md', DOCS / 'results.md', ROOT / 'configs' / 'cct' / 'README.md')
UNDER = 'Verdicts are corrected over'
TABLE = re.compile(rf'<!-- table (.*?) -->\n.*?<!-- end -->(\n\n{UNDER}[^\n]*)?', re.DOTALL)
# † had a method in configs/methods once, or settings of their own
NAMES = {
    'closed-form': 'preview, no training',
    'closed-form-two': 'preview of two backbones †',
    'supervised': 'supervised',
    'self-training': '`self-training`',
    'self-training-two': '`self-training`, preview of two backbones †',
    'cct': '`cct`',
    'cct-strong': '`cct-strong`',
    'cct-plus': '`cct-plus`',
    'own-target': "CCT, the student's own target",
    'fixmatch': '`fixmatch`',
    'fixmatch-teacher': '`fixmatch`, teacher, mild view †',
    'fixmatch-precision': '`fixmatch`, thresholds by precision †',
    'fixmatch-public': '`fixmatch`, joint batch †',
    'unimatch': '`unimatch`',
    'unimatch-tau0': '`unimatch-tau0`',
    'unimatch-public': '`unimatch`, as its code †',
    'unimatch-v2': '`unimatch-v2`',
    'self-train': '`self-train` †',
    'self-train-r50': '`self-train`, ResNet-50 teacher †',
    'self-train-r50-precision': '`self-train`, the same, by precision †',
    'cct-strong-fixed-r50': '`cct-strong`, fixed ResNet-50 teacher',
    'cct-plus-fixed-r50': '`cct-plus`, fixed ResNet-50 teacher',
    'mean-teacher': 'Mean Teacher',
    'input-vat': 'VAT on the images',
    'supervised-strong-views': 'supervised, strong views †',
}
RENAMED = {'ema-target': 'cct'}  # the settings already have a teacher
DATA = {
    'idd_lite': 'IDD Lite, val',
    'idd_lite_r50': 'IDD Lite, val, ResNet-50',
    'camvid': 'CamVid, test',
    'shapes': 'synthetic scenes, test',
    # the baseline on images drawn at random, self-training on those that next-batch chose
    'idd_lite_chosen': 'IDD Lite, val, chosen images',
    'camvid_chosen': 'CamVid, test, chosen images',
}
SPLITS = {name: 'val' if name.startswith('idd') else 'test' for name in DATA}
BASELINE, CLOSED_FORM = 'supervised', 'closed-form'
STARTED = 'self-training'
# Previews and the trainings that start from them; of these the second is gone
STARTS = ((CLOSED_FORM, STARTED), ('closed-form-two', 'self-training-two'))
# Shipped configs with results: data set and number of labels.
CONFIGS = {
    'cct_mbv2-jpu_idd-lite_20': ('idd_lite', 20),
    'cct_mbv2-jpu_idd-lite_100': ('idd_lite', 100),
    'cct_r50-jpu_idd-lite_20': ('idd_lite_r50', 20),
    'cct_mbv2-jpu_camvid-180x240_20': ('camvid', 20),
    'cct_mbv2-jpu_camvid-180x240_100': ('camvid', 100),
}
# Data set, method, iterations and numbers of labels.
HEADLINES = (
    ('idd_lite', 'cct-strong', 1200, (5, 20)),
    ('idd_lite', 'cct-strong', 2400, (100,)),
    ('idd_lite', 'cct-strong', 12000, (5, 20, 100)),
    ('idd_lite_r50', 'cct-strong', 1200, (20,)),
    ('camvid', 'cct-strong', 1200, (5, 20, 50)),
    ('camvid', 'cct-strong', 2400, (50,)),
    ('shapes', 'cct', 1400, (12,)),
)
# README's rows: data set and number of labels, of images drawn at random and of chosen ones
SHOWN = {
    'drawn': (('idd_lite', 5), ('idd_lite', 20), ('camvid', 5)),
    'chosen': (('idd_lite_chosen', 5), ('camvid_chosen', 5)),
}
COMPARISONS = (
    *((method, BASELINE) for method in ('cct-strong', 'cct', 'own-target', 'mean-teacher')),
    *(('input-vat', BASELINE), ('fixmatch', BASELINE), ('cct', 'own-target')),
    *(('cct', 'mean-teacher'), ('cct-strong', 'own-target'), ('cct-strong', 'mean-teacher')),
    *(('cct-strong', 'input-vat'), ('cct-strong', 'fixmatch'), ('cct-strong', 'cct')),
)


class Measured(NamedTuple):
    """A run: mIoU in % after `iterations`; `iou_by_class` is `name=IoU` joined by `;`."""

    data_set: str
    split: str
    labels: int
    iterations: int
    method: str
    seed: int
    miou: float
    iou_by_class: str
    measured: str


Runs = Sequence[Measured]
Gains = dict[tuple[int, int], float]  # by number of labels and seed


def read_runs() -> list[Measured]:
    """Reads the kept runs."""
    types = get_type_hints(Measured)
    with CSV.open(newline='', encoding='utf-8') as stream:
        return [
            Measured(**{key: types[key](value) for key, value in row.items()})
            for row in csv.DictReader(stream)
        ]


def main_runs(runs: Runs, data_set: str) -> list[Measured]:
    """Selects the runs of a setting's own length: 2400 iterations with 100 labels, else 1200."""
    return [
        run
        for run in runs
        if (run.data_set, run.split) == (data_set, SPLITS[data_set])
        and (data_set == 'shapes' or run.iterations == (2400 if run.labels == 100 else 1200))
        and run.labels <= 100
    ]


def runs_of(runs: Runs, data_set: str, labels: int, iterations: int) -> list[Measured]:
    """Selects the runs of one number of labels and one length."""
    setting = data_set, SPLITS[data_set], labels, iterations
    return [run for run in runs if run[:4] == setting]


def mean_of(runs: Runs, method: str) -> str:
    """Formats the mean mIoU of a method's runs."""
    return f'{mean(run.miou for run in runs if run.method == method):.1f}'


def paired_means(runs: Runs, pairs: Gains, methods: Sequence[str]) -> list[str]:
    """Formats the number of pairs, and the mean of each method over their seeds."""
    paired = [run for run in runs if (run.labels, run.seed) in pairs]
    return [str(len(pairs)), *(mean_of(paired, name) for name in methods)]


def gains_of(runs: Runs, method: str, reference: str) -> Gains:
    """Gains of a method over another by number of labels and seed."""
    miou = {(run.method, run.labels, run.seed): run.miou for run in runs}
    return {
        (labels, seed): value - miou[reference, labels, seed]
        for (name, labels, seed), value in miou.items()
        if name == method and (reference, labels, seed) in miou
    }


class Spread(NamedTuple):
    """Standard deviation of the gains of `cells` cells about their means; degrees of freedom."""

    deviation: float
    freedom: int
    cells: int

    def holds(self, gains: Sequence[float], tests: int) -> bool:
        """Whether gains vary no more than this, by an F test that is one of several."""
        ratio = variance(gains) / self.deviation**2
        return bool(fisher.sf(ratio, len(gains) - 1, self.freedom) * tests >= LEVEL)


def common(cells: Sequence[Sequence[float]]) -> Spread:
    """Pools the spread of cells."""
    freedom = sum(len(gains) - 1 for gains in cells)
    squares = sum((len(gains) - 1) * variance(gains) for gains in cells)
    return Spread((squares / freedom) ** 0.5, freedom, len(cells))


def pooled(cells: Iterable[Sequence[float]]) -> Spread:
    """Pools the spread of cells, without those that vary more than all others.

    A method that drifts in some of its runs would widen the intervals of all.
    """
    *narrower, widest = sorted(cells, key=variance)
    if narrower and not common(narrower).holds(widest, len(narrower) + 1):
        return pooled(narrower)
    return common([*narrower, widest])


class Gain(NamedTuple):
    """Mean gain of pairs, half its 95 % interval, and a p to be corrected.

    The interval is by the common spread, or the cell's own if that is larger by an F test. p is the
    larger of those by the common and by the cell's own spread: one does not believe three pairs
    that happen to agree, the other does not trust that all cells vary alike.
    """

    mean: float
    half: float
    p: float
    pairs: int

    def __str__(self) -> str:
        return f'{signed(self.mean)} ±{self.half:.1f}'

    @property
    def verdict(self) -> str:
        """Says whether a method is ahead or behind, by a corrected p."""
        if self.p >= LEVEL:
            return 'no difference shown'
        return '**ahead**' if self.mean > 0 else '**behind**'

    @property
    def bold(self) -> str:
        """Writes a gain, in bold if it is ahead or behind."""
        return str(self) if self.p >= LEVEL else f'**{self}**'


def measured(gains: Sequence[float], spread: Spread) -> Gain:
    """Measures a cell of several pairs."""
    if not spread.holds(gains, spread.cells + 1):
        spread = common([gains])
    error = spread.deviation / len(gains) ** 0.5
    half = float(student.ppf(0.975, spread.freedom) * error)
    p = float(2 * student.sf(abs(mean(gains)) / error, spread.freedom))
    return Gain(mean(gains), half, max(p, p_value(gains)), len(gains))


def corrected(family: Iterable[Gain]) -> list[Gain]:
    """Corrects p by Holm's method over the gains of a table."""
    family = [*family]
    return [gain._replace(p=p) for gain, p in zip(family, holm([gain.p for gain in family]))]


def cells_of(runs: Runs) -> dict[tuple[str, int], list[float]]:
    """Gains over the baseline of the methods that have several pairs, by method and labels."""
    cells: dict[tuple[str, int], list[float]] = {}
    for method in [name for name in NAMES if name != BASELINE]:
        for (labels, _), gain in sorted(gains_of(runs, method, BASELINE).items()):
            cells.setdefault((method, labels), []).append(gain)
    return {key: gains for key, gains in cells.items() if len(gains) > 1}


def spread_of(runs: Runs, data_set: str, iterations: int = 0) -> Spread:
    """Pools the cells of a setting's own length, or of another that has a table of its own."""
    short_and_long = [run for run in runs if run[:2] == (data_set, SPLITS[data_set])]
    long = [run for run in short_and_long if run.iterations == iterations > 2400]
    return pooled(cells_of(long or main_runs(runs, data_set)).values())


def balanced(gains: Gains) -> tuple[list[int], list[int]]:
    """Finds the complete grid of numbers of labels and seeds with the most seeds, then labels.

    Otherwise a seed's mean gain would depend on which numbers of labels it was trained with.
    """
    numbers = sorted({labels for labels, _ in gains})
    by_number = {n: {seed for labels, seed in gains if labels == n} for n in numbers}
    most = max(by_number.values(), key=len)
    return [n for n in numbers if by_number[n] >= most], sorted(most)


def runs_table(runs: Runs, data_set: str, labels: str, iterations: str = '') -> str:
    """A row per method: verdict, gain, corrected p, mean and mIoU by seed.

    A single comparison has no verdict: others are made with the same runs elsewhere.
    """
    selected = [run for run in main_runs(runs, data_set) if run.labels == int(labels)]
    title = f'n = {labels}'
    if iterations:
        selected = runs_of(runs, data_set, int(labels), int(iterations))
        title += f', {iterations} iterations'
    spread = spread_of(runs, data_set, int(iterations or 0))
    seeds = sorted({run.seed for run in selected})
    cells = cells_of(selected)
    family = corrected(measured(gains, spread) for gains in cells.values())
    judged = {
        method: [gain.verdict, str(gain), _p(gain.p)] for (method, _), gain in zip(cells, family)
    }
    rows = []
    for name, method in NAMES.items():
        miou = {run.seed: run.miou for run in selected if run.method == name}
        if miou:
            by_seed = [f'{miou[seed]:.1f}' if seed in miou else '' for seed in seeds]
            verdict = judged.get(name, ['', '', ''])
            rows.append([method, *verdict, f'{mean(miou.values()):.1f}', *by_seed])
    header = [title, 'verdict', 'gain', 'p', 'mean', f'seed {seeds[0]}', *map(str, seeds[1:])]
    if len(family) == 1:
        header, *rows = ([row[0], row[2], *row[4:]] for row in (header, *rows))
        return markdown_table(header, rows)
    table = markdown_table(header, rows, 'll' + 'r' * (len(header) - 2))
    return f'{table}\n\n{_under(len(family), "row", spread)}'


def head_to_head(runs: Runs, data_set: str) -> str:
    """A row per comparison, on balanced grids; rows with the same grid have a common spread."""
    studied = main_runs(runs, data_set)
    rows, samples = [], []
    for method, reference in COMPARISONS:
        gains = gains_of(studied, method, reference)
        numbers, seeds = balanced(gains)
        by_seed = [[gains[labels, seed] for labels in numbers] for seed in seeds]
        higher = sum(gain > 0 for values in by_seed for gain in values)
        grid = ', '.join(map(str, numbers))
        samples.append((grid, [mean(values) for values in by_seed]))
        names = f'{NAMES[method]} over {NAMES[reference]}'
        rows.append([names, f'{higher} of {len(numbers) * len(seeds)}', grid, str(len(seeds))])
    family = [
        measured(means, pooled([others for other, others in samples if other == grid]))
        for grid, means in samples
    ]
    for row, alone, gain in zip(rows, family, corrected(family)):
        row[1:1] = [gain.verdict, str(gain)]
        row += [_p(alone.p), _p(gain.p)]
    header = [DATA[data_set], 'verdict', 'gain', 'higher in', 'labels', 'seeds', 'p', 'by Holm']
    return markdown_table(header, rows, 'llrrlrrr')


def gains_overview(runs: Runs, data_set: str) -> str:
    """A row per method, a column per number of labels: gain, interval, pairs.

    The first row is the baseline's mean mIoU. All cells are one family, with those of methods that
    are gone, which have no row.
    """
    studied, spread = main_runs(runs, data_set), spread_of(runs, data_set)
    numbers = sorted({run.labels for run in studied})
    cells = cells_of(studied)
    family = corrected(measured(gains, spread) for gains in cells.values())
    shown = {key: f'{gain.bold} ({gain.pairs})' for key, gain in zip(cells, family)}
    for n in numbers:
        base = [run for run in studied if (run.method, run.labels) == (BASELINE, n)]
        shown[BASELINE, n] = f'mIoU {mean_of(base, BASELINE)} ({len(base)})'
    names = [name for name, title in NAMES.items() if not title.endswith('†')]
    rows = [[NAMES[name], *(shown.get((name, n), '') for n in numbers)] for name in names]
    titles = [f'n = {n}' for n in numbers]
    table = markdown_table([DATA[data_set], *titles], [row for row in rows if any(row[1:])])
    return f'{table}\n\n{_under(len(family), "cell", spread)}'


def readme_table(runs: Runs, images: str) -> str:
    """A row for each of `SHOWN`: the baseline, the preview, what starts from it and its gain.

    Verdicts are corrected over the rows; intervals are by the spread that they have in common.
    """
    rows, cells = [], []
    methods = [BASELINE, *['cct-strong'] * (images == 'drawn'), CLOSED_FORM, STARTED]
    for data_set, labels in SHOWN[images]:
        selected = started_runs(runs, data_set, labels)
        pairs = gains_of(selected, STARTED, BASELINE)
        cells.append([*pairs.values()])
        title = DATA[data_set].partition(',')[0]
        rows.append([f'{title}, {labels}', *paired_means(selected, pairs, methods)])
    spread = pooled(cells)
    for row, gain in zip(rows, corrected(measured(gains, spread) for gains in cells)):
        row.append(gain.bold)
    columns = ['preview' if name == CLOSED_FORM else NAMES[name] for name in methods]
    return markdown_table(['labels', 'pairs', *columns, 'gain'], rows)


def headlines(runs: Runs) -> str:
    """A row per setting and number of labels: the gain of the default method, or the demo's."""
    rows, family = [], []
    for data_set, method, iterations, numbers in HEADLINES:
        name = DATA[data_set] + f' ({NAMES[method]})' * (method != 'cct-strong')
        for labels in numbers:
            gains = cells_of(runs_of(runs, data_set, labels, iterations))[method, labels]
            family.append(measured(gains, spread_of(runs, data_set, iterations)))
            rows.append([name, f'{iterations:,}', str(labels), str(len(gains))])
    for row, gain in zip(rows, corrected(family)):
        row.append(gain.bold)
    table = markdown_table(['setting', 'iterations', 'labels', 'pairs', 'gain'], rows)
    return f'{table}\n\n{_under(len(family), "row")}'


def preview_table(runs: Runs) -> str:
    """A row per data set and number of labels: the closed form beside trainings with its labels.

    The gain is that of `cct-strong` over it, by the spread that the rows have in common.
    """
    rows, cells = [], []
    for data_set in ('idd_lite', 'camvid'):
        closed = [run for run in runs if (run.data_set, run.method) == (data_set, CLOSED_FORM)]
        for labels in sorted({run.labels for run in closed}):
            selected = started_runs(runs, data_set, labels)
            cells.append([*gains_of(selected, 'cct-strong', CLOSED_FORM).values()])
            means = [mean_of(selected, name) for name in (CLOSED_FORM, BASELINE, 'cct-strong')]
            rows.append([f'{DATA[data_set]}, {labels}', *means])
    spread = pooled(cells)
    for row, gain in zip(rows, corrected(measured(gains, spread) for gains in cells)):
        row.append(gain.bold)
    columns = NAMES[CLOSED_FORM], 'supervised', '`cct-strong`', '`cct-strong` over the preview'
    table = markdown_table(['labels', *columns], rows)
    return f'{table}\n\n{_under(len(rows), "row", spread)}'


def started_runs(runs: Runs, data_set: str, labels: int) -> list[Measured]:
    """Selects the short runs of one number of labels, and the previews as if they were some."""
    settings = [(data_set, SPLITS[data_set], labels, iterations) for iterations in (0, 1200)]
    return [run._replace(iterations=1200) for run in runs if run[:4] in settings]


def started_table(runs: Runs) -> str:
    """A row per data set and number of labels: self-training by the preview.

    Its gains over `cct-strong` and over the preview are by the spread that all cells share, and
    corrected over those by another preview, too.
    """
    rows, cells = [], []
    for preview, method in STARTS:
        for data_set, labels in (('idd_lite', 5), ('idd_lite', 20), ('camvid', 5)):
            selected = started_runs(runs, data_set, labels)
            if not (pairs := gains_of(selected, method, preview)):
                continue
            if method == STARTED:
                means = paired_means(selected, pairs, (BASELINE, 'cct-strong', preview, method))
                rows.append([f'{DATA[data_set]}, {labels}', *means])
            for other in ('cct-strong', preview):
                cells.append([*gains_of(selected, method, other).values()])
    spread = pooled(cells)
    gains = [gain.bold for gain in corrected(measured(cell, spread) for cell in cells)]
    for index, row in enumerate(rows):
        row += gains[2 * index : 2 * index + 2]
    columns = 'supervised', '`cct-strong`', 'preview', '`self-training`'
    columns += 'over `cct-strong`', 'over the preview'
    table = markdown_table(['labels', 'pairs', *columns], rows)
    return f'{table}\n\n{_under(len(cells), "gain", spread)}'


def configs_table(runs: Runs) -> str:
    """A row per config: the mean mIoU of each method that was run with its number of labels."""
    rows, methods = [], (BASELINE, 'cct', 'cct-strong')
    for config, (data_set, labels) in CONFIGS.items():
        selected = [run for run in main_runs(runs, data_set) if run.labels == labels]
        cells = [
            f'{mean_of(selected, method)} ({sum(run.method == method for run in selected)})'
            for method in methods
        ]
        rows.append([f'[{config}]({config}.py)', *cells])
    return markdown_table(['config', *(f'{NAMES[method]} (seeds)' for method in methods)], rows)


TABLES: dict[str, Callable[..., str]] = {
    'readme': readme_table,
    'configs': configs_table,
    'headlines': headlines,
    'preview': preview_table,
    'started': started_table,
    'gains': gains_overview,
    'head-to-head': head_to_head,
    'runs': runs_table,
}


def write_tables(text: str, runs: Runs) -> str:
    """Replaces each table of a page."""

    def written(match: re.Match[str]) -> str:
        name, *options = match[1].split()
        table, *under = TABLES[name](runs, *options).split('\n\n')
        return '\n\n'.join([f'<!-- table {match[1]} -->\n{table}\n<!-- end -->', *under])

    return TABLE.sub(written, text)


def add_study(runs: Runs, study: Path, data_set: str, split: str, date: str) -> list[Measured]:
    """Adds the finished runs of a study's folder; an earlier reading of a run is replaced."""
    by_key = {run[:6]: run for run in runs}
    for result in collect(study):
        trained = StudyRun(study, result.method, result.labels, result.seed)
        config = read_config(trained.config)
        by_class = ';'.join(
            f'{key.removeprefix("IoU.")}={value:.1f}'
            for key, value in (trained.metrics() or {}).items()
            if key.startswith('IoU.')
        )
        method = RENAMED.get(result.method, result.method)
        # a study without numbers of labels has the config's
        labels = result.labels
        if not labels.isdecimal():
            labels = config.train_dataloader.dataset.num_labeled
        run = Measured(
            data_set, split, int(labels), config.train_cfg.max_iters, method, result.seed,
            round(result.miou, 1), by_class, date,
        )  # fmt: skip
        by_key[run[:6]] = run
    return in_order(by_key.values())


def in_order(runs: Iterable[Measured]) -> list[Measured]:
    """Sorts runs as the file has them."""
    names = list(NAMES)
    return sorted(
        runs,
        key=lambda run: (list(DATA).index(run[0]), *run[1:4], names.index(run.method), run.seed),
    )


def csv_text(runs: Runs) -> str:
    """Formats the kept runs."""
    stream = io.StringIO(newline='')
    writer = csv.writer(stream, lineterminator='\n')
    writer.writerow(Measured._fields)
    writer.writerows(runs)
    return stream.getvalue()


def _under(number: int, unit: str, spread: Spread | None = None) -> str:
    """The line under a table: its family, and the spread of its cells."""
    line = f'{UNDER} the {number} {unit}s of the table.'
    if spread is None:
        line += ' Intervals are by the common spread of each setting and length.'
    else:
        half = student.ppf(0.975, spread.freedom) * spread.deviation
        line += (
            f' Common spread {spread.deviation:.2f} mIoU with {spread.freedom} degrees of freedom: '
            f'±{half / 3**0.5:.1f} for three pairs, ±{half / 5**0.5:.1f} for five.'
        )
    return line


def _p(value: float) -> str:
    return '< 0.001' if value < 0.001 else f'{value:.3f}'


def main() -> None:
    """Writes the pages."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument('--add', type=Path, metavar='STUDY', help='folder of a study to add first')
    parser.add_argument('--data-set', choices=DATA, default='idd_lite', help='data set of its runs')
    parser.add_argument('--split', default='val', help='split of that (default: val)')
    args = parser.parse_args()
    runs = read_runs()
    if args.add is not None:
        today = str(datetime.date.today())
        runs = add_study(runs, args.add, args.data_set, args.split, today)
        CSV.write_text(csv_text(runs), encoding='utf-8')
    for page in PAGES:
        page.write_text(write_tables(page.read_text(encoding='utf-8'), runs), encoding='utf-8')


if __name__ == '__main__':
    main()
