"""Results of a study: their tables, and verdicts on gains.

Verdicts are by Student's t, corrected for multiple comparisons by Holm.
"""

import math
from collections.abc import Iterable, Sequence
from pathlib import Path
from statistics import mean, stdev
from typing import NamedTuple

from scipy.stats import t as student

from mmseg_cct.errors import UserError
from mmseg_cct.utils.templates import Table
from mmseg_cct.utils.text import counted, signed

from .execution import find_runs, label_order

LEVEL = 0.05
MIN_PAIRS = 3  # fewer can agree by chance
# Figures are kept to a tenth, so equal gains of two pairs do not show that they never vary.
ROUNDING = 0.1 / math.sqrt(6)  # standard deviation of the difference of two rounded figures


class Result(NamedTuple):
    """mIoU of one run on the test set, in %; of several domains the average.

    `labels` is the number of labelled images, or 'config' for the config's own.
    """

    method: str
    labels: str
    seed: int
    miou: float


def collect(out: Path) -> list[Result]:
    """Reads the results of all finished runs, sorted by method, number of labels and seed."""
    results = []
    for run in find_runs(out):
        if (metrics := run.metrics()) is None:
            continue
        miou = metrics.get('mIoU', math.nan)
        if not math.isfinite(miou):
            raise UserError(run.folder, f'its test gave {metrics}', 'a finite mIoU')
        results.append(Result(run.method, run.labels, run.seed, miou))
    return results


def collect_domains(out: Path) -> dict[str, list[Result]]:
    """Reads the results of each domain; empty for a study of one data set."""
    results: dict[str, list[Result]] = {}
    for run in find_runs(out):
        for key, value in (run.metrics() or {}).items():
            domain, _, metric = key.rpartition('/')
            if domain and metric == 'mIoU':
                result = Result(run.method, run.labels, run.seed, value)
                results.setdefault(domain, []).append(result)
    return results


def label_sets(results: Iterable[Result]) -> list[str]:
    """Lists the labelled sets of results in their order."""
    return sorted({result.labels for result in results}, key=label_order)


def title_of_labels(labels: str) -> str:
    """Titles a panel by its number of labelled images; the config's own set needs no title."""
    return counted(int(labels), 'labelled image') if labels.isdigit() else ''


def select(results: Iterable[Result], method: str, labels: str) -> list[float]:
    """Selects the mIoU of every seed for one method and labelled set."""
    return [r.miou for r in results if (r.method, r.labels) == (method, labels)]


def results_table(results: Sequence[Result], methods: Sequence[str]) -> Table:
    """Lists mean ± standard deviation over seeds, a row per method and a column per set.

    A cell with fewer seeds than the study says how many. Methods without a result are left out.
    """
    columns = label_sets(results)
    num_seeds = len({result.seed for result in results})
    titles = [f'n={column}' if column.isdigit() else 'mIoU' for column in columns]
    rows = []
    for method in methods:
        cells = []
        for column in columns:
            values = select(results, method, column)
            cell = f'{mean(values):.1f}' if values else ''
            if len(values) > 1:
                cell += f' ± {stdev(values):.1f}'
            if 0 < len(values) < num_seeds:
                cell += f' ({counted(len(values), "seed")})'
            cells.append(cell)
        if any(cells):
            rows.append([method, *cells])
    return Table(['method', *titles], rows)


def gains_table(results: Sequence[Result], methods: Sequence[str], reference: str) -> Table:
    """Lists what methods gain over a reference, from the pairs of runs with the same seed.

    A row has the labelled set, the mean gain in mIoU, half the width of its 95 % interval by
    Student's t, the gains by seed, and a verdict in words, corrected for the number of rows.
    """
    before = {(r.labels, r.seed): r.miou for r in results if r.method == reference}
    pairs: dict[tuple[str, str], list[float]] = {}
    for labels in label_sets(results):
        for method in methods:
            miou = {r.seed: r.miou for r in results if (r.method, r.labels) == (method, labels)}
            gains = [miou[n] - before[labels, n] for n in sorted(miou) if (labels, n) in before]
            if gains and method != reference:
                pairs[method, labels] = gains
    rows = []
    for (method_and_labels, gains), verdict in zip(pairs.items(), verdicts(list(pairs.values()))):
        half = f'±{interval(gains):.1f}' if len(gains) > 1 else ''
        by_seed = ' '.join(map(signed, gains))
        rows.append([*method_and_labels, signed(mean(gains)), half, by_seed, verdict])
    header = ['method', 'labels', 'mean gain', '95 %', 'by seed', 'verdict by Holm']
    return Table(header, rows, 'lrrrll')


def interval(values: Sequence[float]) -> float:
    """Half the width of the 95 % interval of a mean by Student's t; infinity for one value."""
    if len(values) < 2:
        return math.inf
    return float(student.ppf(0.975, len(values) - 1) * stdev(values) / math.sqrt(len(values)))


def p_value(gains: Sequence[float]) -> float:
    """Two-sided p of a mean gain of 0 by Student's t; 1 for a single gain, which shows nothing."""
    if len(gains) < 2:
        return 1.0
    error = max(stdev(gains), ROUNDING) / math.sqrt(len(gains))
    return float(2 * student.sf(abs(mean(gains)) / error, len(gains) - 1))


def holm(p_values: Sequence[float]) -> list[float]:
    """Corrects p for the number of comparisons (Holm, 1979).

    The chance of any false verdict among them is at most the level that p is compared with.
    """
    corrected = [0.0] * len(p_values)
    highest = 0.0
    for rank, index in enumerate(sorted(range(len(p_values)), key=p_values.__getitem__)):
        highest = max(highest, min(1.0, (len(p_values) - rank) * p_values[index]))
        corrected[index] = highest
    return corrected


def verdicts(comparisons: Sequence[Sequence[float]]) -> list[str]:
    """Says whether each list of gains is ahead or behind, corrected for the number of lists.

    Fewer than `MIN_PAIRS` gains are no comparison: they get no verdict and do not count.
    """
    several = [gains for gains in comparisons if len(gains) >= MIN_PAIRS]
    # lists without a verdict are left out, or they would make the others' stricter
    corrected = iter(holm([p_value(gains) for gains in several]))
    return [
        f'{verdict(gains, next(corrected))}, {len(gains)} pairs'
        if len(gains) >= MIN_PAIRS
        else f'fewer than {MIN_PAIRS} pairs'
        for gains in comparisons
    ]


def verdict(gains: Sequence[float], corrected: float) -> str:
    """Puts the verdict of a corrected p into words."""
    if corrected < LEVEL:
        return 'ahead' if mean(gains) > 0 else 'behind'
    return 'no difference shown'
