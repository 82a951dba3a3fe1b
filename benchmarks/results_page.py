#!/usr/bin/env python
"""Writes the tables of README.md, docs/results.md and configs/cct/README.md from docs/results.csv.

A table stands between `<!-- table KIND ... -->` and `<!-- end -->`. Gains are of pairs of runs with
the same seed. Verdicts are by Student's t, corrected by Holm over the rows of the table.

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
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import mean
from typing import NamedTuple, get_type_hints

from mmengine.config import Config

from mmseg_cct.cli.errors import user_errors_as_one_line
from mmseg_cct.config.load import read_config
from mmseg_cct.errors import UserError
from mmseg_cct.studies.execution import StudyRun
from mmseg_cct.studies.results import collect, holm, interval, p_value, verdict
from mmseg_cct.utils.files import write_text
from mmseg_cct.utils.templates import markdown_table
from mmseg_cct.utils.text import signed

DOCS = Path(__file__).resolve().parents[1] / 'docs'
ROOT = DOCS.parent
CSV = DOCS / 'results.csv'
PAGES = (ROOT / 'README.md', DOCS / 'results.md', ROOT / 'configs' / 'cct' / 'README.md')
TABLE = re.compile(r'<!-- table (.*?) -->\n.*?<!-- end -->', re.DOTALL)
NAMES = {
    'supervised': 'supervised',
    'cct': '`cct`',
    'cct-strong': '`cct-strong`',
    'cct-plus': '`cct-plus`',
    'own-target': 'CCT, own target',
    'fixmatch': '`fixmatch`',
    'fixmatch-teacher': '`fixmatch`, teacher, calm view',
    'fixmatch-precision': '`fixmatch`, thresholds by precision',
    'fixmatch-public': '`fixmatch`, joint batch',
    'unimatch': '`unimatch`',
    'unimatch-tau0': '`unimatch-tau0`',
    'unimatch-public': '`unimatch`, as its code',
    'unimatch-v2': '`unimatch-v2`',
    'self-train': '`self-train`',
    'self-train-r50': '`self-train`, ResNet-50 teacher',
    'self-train-r50-precision': '`self-train`, the same, by precision',
    'mean-teacher': 'Mean Teacher',
    'input-vat': 'VAT on the images',
    'supervised-strong-views': 'supervised, strong views',
}
RENAMED = {'ema-target': 'cct'}  # the settings already have a teacher
DATA = {
    'idd_lite': 'IDD Lite, val',
    'idd_lite_r50': 'IDD Lite, val, ResNet-50',
    'camvid': 'CamVid, test',
    'shapes': 'drawn scenes, test',
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


def main_runs(runs: Runs, data_set: str, split: str | None = None) -> list[Measured]:
    """Selects the runs of a setting's own length: 2400 iterations with 100 labels, else 1200."""
    chosen = split or SPLITS[data_set]
    return [
        run
        for run in runs
        if (run.data_set, run.split) == (data_set, chosen)
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


def judged(runs: Runs) -> tuple[dict[str, list[float]], dict[str, float]]:
    """Gains of each method over the baseline; p of those with several, corrected over them."""
    gains = {name: [*gains_of(runs, name, BASELINE).values()] for name in NAMES if name != BASELINE}
    several = [name for name in gains if len(gains[name]) > 1]
    return gains, dict(zip(several, holm([p_value(gains[name]) for name in several])))


def balanced(gains: Mapping[tuple[int, int], float]) -> tuple[list[int], list[int]]:
    """Finds the complete grid of numbers of labels and seeds with the most seeds, then labels.

    Otherwise a seed's mean gain would depend on which numbers of labels it was trained with.
    """
    numbers = sorted({labels for labels, _ in gains})
    by_number = {n: {seed for labels, seed in gains if labels == n} for n in numbers}
    most = max(by_number.values(), key=len)
    return [n for n in numbers if by_number[n] >= most], sorted(most)


def paired_table(runs: Runs, labels: int, title: str) -> str:
    """A row per method: verdict, gain, corrected p, mean and mIoU by seed."""
    own = [run for run in runs if run.labels == labels]
    seeds = sorted({run.seed for run in own})
    methods = [name for name in NAMES if any(run.method == name for run in own)]
    gains, corrected = judged(own)
    rows = []
    for name in methods:
        miou = {run.seed: run.miou for run in own if run.method == name}
        if name == BASELINE:
            cells = ['', '', '']
        elif name not in corrected:
            cells = ['one pair', signed(mean(gains[name])), '']
        else:
            said = _verdict(gains[name], corrected[name])
            cells = [said, _gain(gains[name]), _p(corrected[name])]
        by_seed = [_one_digit(miou.get(seed)) for seed in seeds]
        rows.append([NAMES[name], *cells, f'{mean(miou.values()):.1f}', *by_seed])
    shown = [f'seed {seeds[0]}', *map(str, seeds[1:])]
    header = [title, 'verdict', 'gain', 'p', 'mean', *shown]
    return markdown_table(header, rows, 'll' + 'r' * (len(header) - 2))


def head_to_head(runs: Runs, data_set: str) -> str:
    """A row per comparison, on balanced grids; Holm over all rows."""
    own = main_runs(runs, data_set)
    rows, samples = [], []
    for method, reference in COMPARISONS:
        gains = gains_of(own, method, reference)
        numbers, seeds = balanced(gains)
        grid = {seed: [gains[labels, seed] for labels in numbers] for seed in seeds}
        by_seed = [mean(values) for values in grid.values()]
        higher = sum(gain > 0 for values in grid.values() for gain in values)
        samples.append(by_seed)
        names, of = f'{NAMES[method]} over {NAMES[reference]}', len(numbers) * len(seeds)
        cells = [f'{higher} of {of}', ', '.join(map(str, numbers)), str(len(seeds))]
        rows.append([names, _gain(by_seed), *cells])
    p_values = list(map(p_value, samples))
    for row, sample, p, corrected in zip(rows, samples, p_values, holm(p_values)):
        row.insert(1, _verdict(sample, corrected))
        row += [_p(p), _p(corrected)]
    header = [DATA[data_set], 'verdict', 'gain', 'higher in', 'labels', 'seeds', 'p', 'by Holm']
    return markdown_table(header, rows, 'llrrlrrr')


def gains_overview(runs: Runs, data_set: str) -> str:
    """A row per method, a column per number of labels: gain, interval, pairs.

    The first row is the baseline's mean mIoU. Verdicts are corrected over the rows of a column;
    what is ahead or behind is bold.
    """
    own = main_runs(runs, data_set)
    numbers = sorted({run.labels for run in own})
    columns = [_gains_column([run for run in own if run.labels == n]) for n in numbers]
    rows = [[NAMES[name], *(column.get(name, '') for column in columns)] for name in NAMES]
    titles = [f'n = {n}' for n in numbers]
    return markdown_table([DATA[data_set], *titles], [row for row in rows if any(row[1:])])


def _gains_column(runs: Runs) -> dict[str, str]:
    """The cells of the methods that have several pairs, and of the baseline, by name."""
    gains, corrected = judged(runs)
    base = [run.miou for run in runs if run.method == BASELINE]
    cells = {BASELINE: f'mIoU {mean(base):.1f} ({len(base)})'}
    for name, p in corrected.items():
        bold = '**' * (not verdict(gains[name], p).startswith('no'))
        cells[name] = f'{bold}{_gain(gains[name])}{bold} ({len(gains[name])})'
    return cells


def readme_table(runs: Runs) -> str:
    """A row per data set and number of labels of the short studies: paired runs, gain, interval."""
    rows = []
    for data_set in ('idd_lite', 'camvid'):
        own = main_runs(runs, data_set)
        for labels in sorted({run.labels for run in own}):
            some = [run for run in own if run.labels == labels]
            gains = gains_of(some, 'cct-strong', BASELINE)
            seeds = {seed for _, seed in gains}
            means = [
                mean(run.miou for run in some if run.method == method and run.seed in seeds)
                for method in (BASELINE, 'cct-strong')
            ]
            gain = _gain([*gains.values()])
            corrected = judged(some)[1]['cct-strong']
            if not verdict([*gains.values()], corrected).startswith('no'):
                gain = f'**{gain}**'
            name = DATA[data_set].partition(',')[0]
            rows.append([f'{name}, {labels}', *map(_one_digit, means), gain])
    return markdown_table(['labels', 'supervised', '`cct-strong`', 'gain'], rows, 'lrrr')


def configs_table(runs: Runs) -> str:
    """A row per config: the mean mIoU of each method that was run with its number of labels."""
    rows = []
    for config, (data_set, labels) in CONFIGS.items():
        own = [run for run in main_runs(runs, data_set) if run.labels == labels]
        cells = []
        for method in (BASELINE, 'cct', 'cct-strong'):
            miou = [run.miou for run in own if run.method == method]
            cells.append(f'{mean(miou):.1f} ({len(miou)})')
        rows.append([f'[{config}]({config}.py)', *cells])
    header = ['config', *(f'{NAMES[method]} (seeds)' for method in (BASELINE, 'cct', 'cct-strong'))]
    return markdown_table(header, rows)


def table_of(words: Sequence[str], runs: Runs) -> str:
    """Makes the table that a marker asks for."""
    kind, *rest = words
    if kind == 'head-to-head':
        return head_to_head(runs, rest[0])
    if kind == 'gains':
        return gains_overview(runs, rest[0])
    whole = dict(readme=readme_table, configs=configs_table)
    if kind in whole:
        return whole[kind](runs)
    data_set, split, labels, *iterations = rest
    title = f'n = {labels}' + (f', {split}' if data_set == 'camvid' else '')
    if not iterations:
        return paired_table(main_runs(runs, data_set, split), int(labels), title)
    wanted = data_set, split, int(labels), int(iterations[0])
    own = [run for run in runs if run[:4] == wanted]
    return paired_table(own, int(labels), f'{title}, {iterations[0]} iterations')


def write_tables(text: str, runs: Runs) -> str:
    """Replaces each table of a page."""

    def written(match: re.Match[str]) -> str:
        return f'<!-- table {match[1]} -->\n{table_of(match[1].split(), runs)}\n<!-- end -->'

    return TABLE.sub(written, text)


def add_study(runs: Runs, study: Path, data_set: str, split: str, date: str) -> list[Measured]:
    """Adds the finished runs of a study's folder; an earlier reading of a run is replaced."""
    found = {run[:6]: run for run in runs}
    for result in collect(study):
        trained = StudyRun(study, result.method, result.labels, result.seed)
        config = read_config(trained.config)
        by_class = ';'.join(
            f'{key.removeprefix("IoU.")}={value:.1f}'
            for key, value in (trained.metrics() or {}).items()
            if key.startswith('IoU.')
        )
        method = RENAMED.get(result.method, result.method)
        if method not in NAMES:
            raise UserError(
                f'{trained.folder}: method {method}; expected one of {", ".join(NAMES)}'
            )
        length = config.train_cfg.max_iters
        run = Measured(
            data_set, split, _number_of(result.labels, config), length, method, result.seed,
            round(result.miou, 1), by_class, date,
        )  # fmt: skip
        found[run[:6]] = run
    names = list(NAMES)
    return sorted(
        found.values(),
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


def _verdict(gains: Sequence[float], corrected: float) -> str:
    said = verdict(gains, corrected)
    return said if said.startswith('no') else f'**{said}**'


def _gain(gains: Sequence[float]) -> str:
    return f'{signed(mean(gains))} ±{interval(gains):.1f}'


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
    parser.add_argument('--measured', default=str(datetime.date.today()), metavar='DATE')
    args = parser.parse_args()
    runs = read_runs()
    with user_errors_as_one_line():
        if args.add is not None:
            if args.data_set is None:
                raise UserError('--add: no --data-set; expected what the runs were tested on')
            runs = add_study(runs, args.add, args.data_set, args.split, args.measured)
            write_text(CSV, csv_text(runs))
        for page in PAGES:
            write_text(page, write_tables(page.read_text(encoding='utf-8'), runs))


if __name__ == '__main__':
    main()
