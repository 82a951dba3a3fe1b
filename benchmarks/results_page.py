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
from collections.abc import Iterable, Mapping, Sequence
from itertools import compress
from pathlib import Path
from statistics import mean, variance
from typing import NamedTuple, get_type_hints

from mmengine.config import Config
from scipy.stats import f as fisher
from scipy.stats import t as student

from mmseg_cct.cli.errors import user_errors_as_one_line
from mmseg_cct.config.load import read_config
from mmseg_cct.errors import UserError
from mmseg_cct.studies.execution import StudyRun
from mmseg_cct.studies.results import LEVEL, collect, holm, p_value
from mmseg_cct.utils.files import write_text
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
    'supervised': 'supervised',
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
}
SPLITS = {'idd_lite': 'val', 'idd_lite_r50': 'val', 'camvid': 'test', 'shapes': 'test'}
BASELINE = 'supervised'
# Shipped configs with results: data set and number of labels.
CONFIGS = {
    'cct_mbv2-jpu_idd-lite_20': ('idd_lite', 20),
    'cct_mbv2-jpu_idd-lite_100': ('idd_lite', 100),
    'cct_r50-jpu_idd-lite_20': ('idd_lite_r50', 20),
    'cct_mbv2-jpu_camvid-180x240_20': ('camvid', 20),
    'cct_mbv2-jpu_camvid-180x240_100': ('camvid', 100),
}
# Data set, method, iterations and number of labels.
HEADLINES = (
    *(('idd_lite', 'cct-strong', *size) for size in ((1200, 5), (1200, 20), (2400, 100))),
    *(('idd_lite', 'cct-strong', 12000, labels) for labels in (5, 20, 100)),
    ('idd_lite_r50', 'cct-strong', 1200, 20),
    *(
        ('camvid', 'cct-strong', iterations, labels)
        for iterations, labels in ((1200, 5), (1200, 20), (1200, 50), (2400, 50))
    ),
    ('shapes', 'cct', 1400, 12),
)
# README's rows: data set and number of labels
SHOWN = {('idd_lite', 5), ('idd_lite', 20), ('camvid', 5)}
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


def gains_of(runs: Runs, method: str, reference: str) -> dict[tuple[int, int], float]:
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


def measured(gains: Sequence[float], spread: Spread) -> Gain:
    """Measures a cell of several pairs."""
    if not spread.holds(gains, spread.cells + 1):
        spread = common([gains])
    error = spread.deviation / len(gains) ** 0.5
    half = float(student.ppf(0.975, spread.freedom) * error)
    p = float(2 * student.sf(abs(mean(gains)) / error, spread.freedom))
    return Gain(mean(gains), half, max(p, p_value(gains)), len(gains))


def verdicts(family: Sequence[Gain]) -> list[str]:
    """Says whether each gain is ahead or behind after Holm's correction over all of them."""
    return [
        'no difference shown' if p >= LEVEL else '**ahead**' if gain.mean > 0 else '**behind**'
        for gain, p in zip(family, holm([gain.p for gain in family]))
    ]


def bold(family: Sequence[Gain]) -> list[str]:
    """Writes the gains of a table; those that are ahead or behind are bold."""
    return [
        str(gain) if verdict.startswith('no') else f'**{gain}**'
        for gain, verdict in zip(family, verdicts(family))
    ]


def cells_of(runs: Runs) -> dict[tuple[str, int], list[float]]:
    """Gains over the baseline of the methods that have several pairs, by method and labels."""
    numbers = sorted({run.labels for run in runs})
    gains = {
        (method, n): [
            *gains_of([run for run in runs if run.labels == n], method, BASELINE).values()
        ]
        for method in NAMES
        for n in numbers
        if method != BASELINE
    }
    return {key: values for key, values in gains.items() if len(values) > 1}


def spread_of(runs: Runs, data_set: str, iterations: int = 0) -> Spread:
    """Pools the cells of a setting's own length, or of another that has a table of its own."""
    short_and_long = [run for run in runs if run[:2] == (data_set, SPLITS[data_set])]
    long = [run for run in short_and_long if run.iterations == iterations > 2400]
    return pooled(cells_of(long or main_runs(runs, data_set)).values())


def balanced(gains: Mapping[tuple[int, int], float]) -> tuple[list[int], list[int]]:
    """Finds the complete grid of numbers of labels and seeds with the most seeds, then labels.

    Otherwise a seed's mean gain would depend on which numbers of labels it was trained with.
    """
    numbers = sorted({labels for labels, _ in gains})
    by_number = {n: {seed for labels, seed in gains if labels == n} for n in numbers}
    most = max(by_number.values(), key=len)
    return [n for n in numbers if by_number[n] >= most], sorted(most)


def paired_table(runs: Runs, labels: int, title: str, spread: Spread) -> str:
    """A row per method: verdict, gain, corrected p, mean and mIoU by seed.

    A single comparison has no verdict: others are made with the same runs elsewhere.
    """
    selected = [run for run in runs if run.labels == labels]
    seeds = sorted({run.seed for run in selected})
    cells = cells_of(selected)
    family = [measured(gains, spread) for gains in cells.values()]
    corrected = holm([gain.p for gain in family])
    judged = {
        method: [verdict, str(gain), _p(p)]
        for (method, _), verdict, gain, p in zip(cells, verdicts(family), family, corrected)
    }
    rows = []
    for name in NAMES:
        miou = {run.seed: run.miou for run in selected if run.method == name}
        if miou:
            by_seed = [_one_digit(miou.get(seed)) for seed in seeds]
            rows.append(
                [
                    name,
                    *judged.get(name, ['', '', '']),
                    f'{mean(miou.values()):.1f}',
                    *by_seed,
                ]
            )
    shown = [f'seed {seeds[0]}', *map(str, seeds[1:])]
    header = [title, 'verdict', 'gain', 'p', 'mean', *shown]
    if len(family) == 1:
        header, *rows = ([row[0], row[2], *row[4:]] for row in (header, *rows))
    align = None if len(family) == 1 else 'll' + 'r' * (len(header) - 2)
    table = markdown_table(header, [[NAMES[name], *values] for name, *values in rows], align)
    return f'{table}\n\n{_under(len(family), "row", spread)}' if len(family) > 1 else table


def head_to_head(runs: Runs, data_set: str) -> str:
    """A row per comparison, on balanced grids; rows with the same grid have a common spread."""
    studied = main_runs(runs, data_set)
    rows, samples = [], []
    for method, reference in COMPARISONS:
        gains = gains_of(studied, method, reference)
        numbers, seeds = balanced(gains)
        grid = {seed: [gains[labels, seed] for labels in numbers] for seed in seeds}
        higher = sum(gain > 0 for values in grid.values() for gain in values)
        samples.append((str(numbers), [mean(values) for values in grid.values()]))
        names, num_gains = f'{NAMES[method]} over {NAMES[reference]}', len(numbers) * len(seeds)
        rows.append(
            [names, f'{higher} of {num_gains}', ', '.join(map(str, numbers)), str(len(seeds))]
        )
    by_grid: dict[str, list] = {}
    for grid_name, means in samples:
        by_grid.setdefault(grid_name, []).append(means)
    family = [measured(means, pooled(by_grid[grid_name])) for grid_name, means in samples]
    corrected = holm([gain.p for gain in family])
    for row, verdict, gain, p in zip(rows, verdicts(family), family, corrected):
        row[1:1] = [verdict, str(gain)]
        row += [_p(gain.p), _p(p)]
    header = [DATA[data_set], 'verdict', 'gain', 'higher in', 'labels', 'seeds', 'p', 'by Holm']
    return markdown_table(header, rows, 'llrrlrrr')


def gains_overview(runs: Runs, data_set: str, gone: str = '') -> str:
    """A row per method, a column per number of labels: gain, interval, pairs.

    The first row is the baseline's mean mIoU. With `gone`, the rows are those of methods that went.
    All cells of both tables are one family.
    """
    studied, spread = main_runs(runs, data_set), spread_of(runs, data_set)
    numbers = sorted({run.labels for run in studied})
    cells = cells_of(studied)
    family = [measured(gains, spread) for gains in cells.values()]
    shown = {key: f'{text} ({gain.pairs})' for key, gain, text in zip(cells, family, bold(family))}
    for n in numbers:
        base = [run.miou for run in studied if (run.method, run.labels) == (BASELINE, n)]
        shown[BASELINE, n] = f'mIoU {mean(base):.1f} ({len(base)})'
    names = [name for name, title in NAMES.items() if title.endswith('†') == bool(gone)]
    rows = [[NAMES[name], *(shown.get((name, n), '') for n in numbers)] for name in names]
    titles = [f'n = {n}' for n in numbers]
    table = markdown_table([DATA[data_set], *titles], [row for row in rows if any(row[1:])])
    return table if gone else f'{table}\n\n{_under(len(family), "cell", spread)}'


def readme_table(runs: Runs) -> str:
    """A row for each of `SHOWN`: paired runs, gain, interval.

    Verdicts are corrected over all data sets and numbers of labels of the short studies.
    """
    rows, family, shown = [], [], []
    for data_set in ('idd_lite', 'camvid'):
        studied, spread = main_runs(runs, data_set), spread_of(runs, data_set)
        for labels in sorted({run.labels for run in studied}):
            selected = [run for run in studied if run.labels == labels]
            gains = gains_of(selected, 'cct-strong', BASELINE)
            means = [
                mean(
                    run.miou
                    for run in selected
                    if run.method == name and (labels, run.seed) in gains
                )
                for name in (BASELINE, 'cct-strong')
            ]
            family.append(measured([*gains.values()], spread))
            name = DATA[data_set].partition(',')[0]
            rows.append([f'{name}, {labels}', *map(_one_digit, means)])
            shown.append((data_set, labels) in SHOWN)
    for row, gain in zip(rows, bold(family)):
        row.append(gain)
    header = ['labels', 'supervised', '`cct-strong`', 'gain']
    return markdown_table(header, [*compress(rows, shown)])


def headlines(runs: Runs) -> str:
    """A row per setting and number of labels: the gain of the default method, or the demo's."""
    rows, family = [], []
    for data_set, method, iterations, labels in HEADLINES:
        chosen = data_set, SPLITS[data_set], labels, iterations
        gains = cells_of([run for run in runs if run[:4] == chosen])[method, labels]
        family.append(measured(gains, spread_of(runs, data_set, iterations)))
        name = DATA[data_set] + f' ({NAMES[method]})' * (method != 'cct-strong')
        rows.append([name, f'{iterations:,}', str(labels), str(len(gains))])
    for row, gain in zip(rows, bold(family)):
        row.append(gain)
    table = markdown_table(['setting', 'iterations', 'labels', 'pairs', 'gain'], rows)
    return f'{table}\n\n{_under(len(family), "row")}'


def configs_table(runs: Runs) -> str:
    """A row per config: the mean mIoU of each method that was run with its number of labels."""
    rows = []
    for config, (data_set, labels) in CONFIGS.items():
        selected = [run for run in main_runs(runs, data_set) if run.labels == labels]
        cells = []
        for method in (BASELINE, 'cct', 'cct-strong'):
            miou = [run.miou for run in selected if run.method == method]
            cells.append(f'{mean(miou):.1f} ({len(miou)})')
        rows.append([f'[{config}]({config}.py)', *cells])
    header = ['config', *(f'{NAMES[method]} (seeds)' for method in (BASELINE, 'cct', 'cct-strong'))]
    return markdown_table(header, rows)


def table_of(words: Sequence[str], runs: Runs) -> str:
    """Makes the table that a marker asks for."""
    table, *options = words
    if table in (whole := dict(readme=readme_table, configs=configs_table, headlines=headlines)):
        return whole[table](runs)
    if table in (of_data_set := {'gains': gains_overview, 'head-to-head': head_to_head}):
        return of_data_set[table](runs, *options)
    data_set, labels, *iterations = options
    length, title = [int(number) for number in iterations], f'n = {labels}'
    selected = main_runs(runs, data_set)
    if length:
        chosen = data_set, SPLITS[data_set], int(labels), *length
        selected = [run for run in runs if run[:4] == chosen]
        title += f', {length[0]} iterations'
    return paired_table(selected, int(labels), title, spread_of(runs, data_set, *length))


def write_tables(text: str, runs: Runs) -> str:
    """Replaces each table of a page."""

    def written(match: re.Match[str]) -> str:
        table, *under = table_of(match[1].split(), runs).split('\n\n')
        return '\n\n'.join([f'<!-- table {match[1]} -->\n{table}\n<!-- end -->', *under])

    return TABLE.sub(written, text)


def add_study(
    runs: Runs, study: Path, data_set: str, split: str, date: str, name: str | None = None
) -> list[Measured]:
    """Adds the finished runs of a study's folder; an earlier reading of a run is replaced.

    `name` is another name for its method, such as one that says how its labels were chosen.
    """
    by_key = {run[:6]: run for run in runs}
    for result in collect(study):
        trained = StudyRun(study, result.method, result.labels, result.seed)
        config = read_config(trained.config)
        by_class = ';'.join(
            f'{key.removeprefix("IoU.")}={value:.1f}'
            for key, value in (trained.metrics() or {}).items()
            if key.startswith('IoU.')
        )
        method = name or RENAMED.get(result.method, result.method)
        if method not in NAMES:
            raise UserError(
                f'{trained.folder}: method {method}; expected one of {", ".join(NAMES)}'
            )
        length = config.train_cfg.max_iters
        run = Measured(
            data_set, split, _number_of(result.labels, config), length, method, result.seed,
            round(result.miou, 1), by_class, date,
        )  # fmt: skip
        by_key[run[:6]] = run
    names = list(NAMES)
    return sorted(
        by_key.values(),
        key=lambda run: (list(DATA).index(run[0]), *run[1:4], names.index(run.method), run.seed),
    )


def _number_of(labels: str, config: Config) -> int:
    """Returns the number of labelled images of a run; a study without numbers has the config's."""
    return int(labels if labels.isdecimal() else config.train_dataloader.dataset.num_labeled)


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
        half = {
            pairs: student.ppf(0.975, spread.freedom) * spread.deviation / pairs**0.5
            for pairs in (3, 5)
        }
        line += (
            f' Common spread {spread.deviation:.2f} mIoU with {spread.freedom} degrees of freedom: '
            f'±{half[3]:.1f} for three pairs, ±{half[5]:.1f} for five.'
        )
    return line


def _one_digit(value: float | None) -> str:
    return '' if value is None else f'{value:.1f}'


def _p(value: float) -> str:
    return '< 0.001' if value < 0.001 else f'{value:.3f}'


def main() -> None:
    """Writes the pages."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument('--add', type=Path, metavar='STUDY', help='folder of a study to add first')
    parser.add_argument('--data-set', choices=list(DATA), help='data set of its runs')
    parser.add_argument('--split', default='val', help='split of that (default: val)')
    parser.add_argument('--name', choices=list(NAMES), help='name of its one method, if another')
    parser.add_argument('--measured', default=str(datetime.date.today()), metavar='DATE')
    args = parser.parse_args()
    runs = read_runs()
    with user_errors_as_one_line():
        if args.add is not None:
            if args.data_set is None:
                raise UserError('--add: no --data-set; expected what the runs were tested on')
            runs = add_study(runs, args.add, args.data_set, args.split, args.measured, args.name)
            write_text(CSV, csv_text(runs))
        for page in PAGES:
            write_text(page, write_tables(page.read_text(encoding='utf-8'), runs))


if __name__ == '__main__':
    main()
