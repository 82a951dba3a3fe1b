"""Learning curves of supervised training and a method: what unlabelled images are worth."""

import copy
import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import mean
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from mmengine.config import Config
from mmengine.registry import init_default_scope

from mmseg_cct.config.shipped import PLAIN
from mmseg_cct.datasets import SemiSegDataset
from mmseg_cct.datasets.semi_supervised import branch_settings
from mmseg_cct.engine.visualization.figures import png_bytes
from mmseg_cct.errors import UserError
from mmseg_cct.utils.files import write_atomic, write_text
from mmseg_cct.utils.templates import render
from mmseg_cct.utils.text import counted, signed

from .results import (
    MIN_PAIRS,
    Curves,
    Result,
    collect,
    interval,
    read_validations,
    results_table,
    write_csv,
)
from .study import Labels, require_one_domain, study_config

BASELINE = 'supervised'
PAYS, COSTS = 'pays', 'costs'
# A network is barely trained if the last quarter of its training still added more than this share
# of its mIoU on the validation set.
RISING_SHARE = 0.1
# mIoU by number of labels and seed.
_Runs = Mapping[int, Mapping[int, float]]


@dataclass(frozen=True)
class Answer:
    """Says in words with which numbers of labels a method pays."""

    title: str
    pays: str | None
    costs: str | None
    untold: dict[str, str]  # those with which it cannot be told, by the reason
    lines: list[str]  # gain and worth with each number


def nested_subsets(base: str, options: dict[str, Any], numbers: Sequence[int]) -> dict[str, Labels]:
    """Draws nested subsets of a config's labelled images, different ones for each seed.

    The unlabelled set stays as it is: images that lose their labels are not used at all.

    `numbers` are the sizes, by default an eighth, a quarter, a half and all of the images. Returns
    a setter of the subset for each.

    Raises:
        UserError: If a size is out of range, the config takes a subset already, or a study cannot
            train it.
    """
    config = study_config(base, options)
    require_one_domain(config, base)
    init_default_scope(config.get('default_scope') or 'mmseg')
    labeled = config.train_dataloader.dataset.labeled
    if labeled.get('indices') is not None:
        raise UserError(
            base, 'train_dataloader.dataset.labeled.indices takes a subset already', 'none'
        )
    chosen = branch_settings(config.train_dataloader.dataset, 'labeled')
    total = len(SemiSegDataset(copy.deepcopy(chosen)).labeled)
    numbers = sorted(set(numbers or [max(total // part, 1) for part in (8, 4, 2, 1)]))
    if not 1 <= numbers[0] <= numbers[-1] <= total:
        expected = f'numbers from 1 to {total}, the labelled images of {base}'
        raise UserError(f'-n {" ".join(map(str, numbers))}', '', expected)

    def use(number: int) -> Labels:

        def set_labels(config: Config, seed: int) -> None:
            # NumPy guarantees the stream of RandomState; `draw_split` relies on it, too.
            order = np.random.RandomState(seed).permutation(total)
            chosen = sorted(order[:number].tolist())
            config.train_dataloader.dataset.labeled.indices = chosen

        return set_labels

    return {str(number): use(number) for number in numbers}


def write_learning_curve(out: Path) -> Path:
    """Writes `results.csv`, `learning_curve.md` and the figure; returns the page's path."""
    results = [r for r in collect(out) if r.labels.isdigit()]
    write_csv(results, out / 'results.csv')
    if results:
        picture = png_bytes(plot_learning_curve(results), 120)
        write_atomic(out / 'learning_curve.png', picture)
    page = render(
        'studies/learning_curve.md.jinja',
        answer=answer(results, barely_trained(read_validations(out, results))),
        results=results_table(results, compared(results)),
        drawn=bool(results),
    )
    write_text(out / 'learning_curve.md', page)
    return out / 'learning_curve.md'


def compared(results: Sequence[Result]) -> tuple[str, str]:
    """Names the baseline, and the one method that is compared with it."""
    others = sorted({result.method for result in results} - {BASELINE}) or [PLAIN]
    if len(others) > 1:
        raise UserError(f'runs of {", ".join(others)}', '', 'one method beside the baseline')
    return BASELINE, others[0]


def equivalent_labels(numbers: Sequence[int], miou: Sequence[float], target: float) -> float:
    """Estimates how many labels supervised training needs to reach an mIoU.

    Interpolates the curve linearly in log n. Returns its first number if it starts at or above the
    target, infinity if it stays below.
    """
    if target <= miou[0]:
        return float(numbers[0])
    for (n, low), (m, high) in zip(zip(numbers, miou), zip(numbers[1:], miou[1:])):
        if low < target <= high:
            share = (target - low) / (high - low)
            return n * (m / n) ** share
    return math.inf


def barely_trained(curves: Curves) -> set[int]:
    """Finds the numbers of labels whose networks are barely trained.

    At these, a run gained more than `RISING_SHARE` of its last mIoU in the last quarter of its
    training, measured from the validation nearest to the start of that quarter. A gain over a
    longer time is scaled down in proportion. Runs that validated only once do not count.
    """
    found = set()
    for (_, labels), runs in curves.items():
        for validations in runs:
            end, last = validations[-1]
            earlier = [validation for validation in validations if validation[0] < end]
            if not earlier:
                continue
            step, before = min(earlier, key=lambda validation: abs(validation[0] - 0.75 * end))
            gain = (last - before) * min(1, 0.25 * end / (end - step))
            if gain > RISING_SHARE * last:
                found.add(int(labels))
    return found


def answer(results: Sequence[Result], rising: Collection[int] = ()) -> Answer:
    """Summarises the method's gain at each number of labels, by its 95 % interval over the seeds.

    The means in a line are over the seeds that both methods have at that number of labels.
    `rising` are the numbers of labels whose networks are barely trained.
    """
    methods = compared(results)
    title = methods[1]
    supervised, other = (_by_seed(results, method) for method in methods)
    lines: list[str] = []
    verdicts: dict[str, list[int]] = {}
    for n in supervised:
        seeds = _shared_seeds(supervised, other, n)
        if not seeds:
            continue
        gains = [other[n][seed] - supervised[n][seed] for seed in seeds]
        verdicts.setdefault(_verdict(gains, n in rising), []).append(n)
        reached, curve = mean(other[n][seed] for seed in seeds), _mean_curve(supervised, seeds)
        line = (
            f'{_labels([n])}: {title} {reached:.1f}, supervised {curve[n]:.1f} mIoU; '
            f'{signed(mean(gains))}{_spread(gains)}. {_worth(n, reached, curve)}'
        )
        if missing := [m for m in supervised if m not in curve]:
            line += f' Left out: {_labels(missing)}, without a supervised run of each seed.'
        lines.append(line)
    said = {verdict: _labels(numbers) for verdict, numbers in verdicts.items()}
    return Answer(title, said.pop(PAYS, None), said.pop(COSTS, None), said, lines)


def plot_learning_curve(results: Sequence[Result]) -> Figure:
    """Plots both curves, with arrows from the method to the equivalent number of supervised labels.

    Each seed is a dot beside the mean. If both methods share seeds, only those are plotted.
    """
    figure = Figure(figsize=(6, 4), layout='constrained')
    axes = figure.subplots()
    methods = compared(results)
    supervised, other = (_by_seed(results, method) for method in methods)
    for index, (method, by_number) in enumerate(zip(methods, (supervised, other))):
        points = {
            n: [by_seed[seed] for seed in _shared_seeds(supervised, other, n) or by_seed]
            for n, by_seed in by_number.items()
        }
        means = list(map(mean, points.values()))
        axes.plot(list(points), means, 'o-', color=f'C{index}', label=method)
        for n, values in points.items():
            beside = n * (0.96, 1.04)[index]
            axes.scatter([beside] * len(values), values, 12, color=f'C{index}', alpha=0.5)
    for n, by_seed in other.items():
        seeds = _shared_seeds(supervised, other, n) or list(by_seed)
        curve = _mean_curve(supervised, seeds)
        if not curve:
            continue
        reached = mean(by_seed[seed] for seed in seeds)
        worth = equivalent_labels(list(curve), list(curve.values()), reached)
        if n < worth < math.inf:
            look = dict(arrowstyle='->', color='0.5', linestyle=':')
            axes.annotate('', (worth, reached), (n, reached), arrowprops=look)
    numbers = sorted({int(result.labels) for result in results})
    axes.set(xscale='log', xlabel='labelled images', ylabel='mIoU on the test set, %')
    axes.set_xticks(numbers, map(str, numbers))
    axes.minorticks_off()
    axes.grid(alpha=0.3)
    axes.legend()
    return figure


def _by_seed(results: Sequence[Result], method: str) -> _Runs:
    """mIoU of a method by number of labels (ascending) and seed."""
    numbers = sorted({int(result.labels) for result in results if result.method == method})
    return {
        n: {r.seed: r.miou for r in results if (r.method, r.labels) == (method, str(n))}
        for n in numbers
    }


def _shared_seeds(one: _Runs, other: _Runs, n: int) -> list[int]:
    """The seeds that both methods have with n labels."""
    return sorted(one.get(n, {}).keys() & other.get(n, {}).keys())


def _mean_curve(runs: _Runs, seeds: Collection[int]) -> dict[int, float]:
    """Means over seeds, at the numbers of labels that have a run of every seed."""
    return {
        n: mean(by_seed[seed] for seed in seeds)
        for n, by_seed in runs.items()
        if by_seed.keys() >= set(seeds)
    }


def _verdict(gains: Sequence[float], is_rising: bool) -> str:
    """Returns `PAYS` or `COSTS`, or the reason why neither can be told."""
    if is_rising:
        return 'the networks are barely trained (mIoU still rose at the end); train longer'
    if len(gains) < MIN_PAIRS:
        return f'fewer than {MIN_PAIRS} seeds can agree by chance; run more'
    if abs(mean(gains)) <= interval(gains):
        return 'the 95 % interval of the gain holds 0'
    return PAYS if mean(gains) > 0 else COSTS


def _spread(gains: Sequence[float]) -> str:
    if len(gains) == 1:
        return ', one seed'
    ahead = f'ahead with {sum(gain > 0 for gain in gains)} of {len(gains)} seeds'
    return f' ±{interval(gains):.1f}, {ahead}'


def _labels(numbers: Sequence[int]) -> str:
    """Lists numbers of labels: `1 label`, `10 and 20 labels`."""
    *most, last = numbers
    text = counted(last, 'label') if not most else f'{last} labels'
    return f'{", ".join(map(str, most))} and {text}' if most else text


def _worth(n: int, reached: float, curve: Mapping[int, float]) -> str:
    """Compares n labels to the number that supervised training needs."""
    numbers, miou = list(curve), list(curve.values())
    earlier = [m for m in curve if m < n and curve[m] >= reached]
    if earlier and reached > curve[n]:
        return (
            f'What that is worth in labels cannot be told: supervised training is better with '
            f'{_labels(earlier[:1])} ({curve[earlier[0]]:.1f}) than with {n}.'
        )
    needed = equivalent_labels(numbers, miou, reached)
    if needed == math.inf:
        return f'Supervised training does not reach that with any number up to {numbers[-1]}.'
    if reached <= miou[0]:
        return f'Supervised training is as good with {_labels(numbers[:1])} or fewer.'
    change = round(needed) - n
    further = f'{counted(abs(change), "label")} {"more" if change > 0 else "fewer"}'
    told = further if change else 'as many'
    return f'Supervised training needs about {_labels([round(needed)])} for that, {told}.'
