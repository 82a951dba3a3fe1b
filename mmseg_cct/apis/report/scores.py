"""Scores as a report shows them, in % to one digit, and how runs compare by them in a sentence."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from mmseg_cct.engine.metrics.scores import iou_of
from mmseg_cct.utils.templates import Table
from mmseg_cct.utils.text import signed

from .evaluation import Evaluation

LEVEL = 0.5  # points of mIoU: another seed alone moves a run by as much
ONE_RUN_EACH = 'Single runs: expect other numbers with another seed.'


@dataclass(frozen=True)
class Score:
    """A score of each run."""

    name: str  # the class, or `mean`
    values: list[float | None]  # in %, by run; None where a class neither occurs nor is predicted
    difference: float | None = None  # of two runs, the second minus the first


def class_scores(evaluations: Mapping[str, Evaluation], classes: Sequence[str]) -> list[Score]:
    """Returns the IoU of each class that a mask shows.

    The classes of two runs are sorted by the difference, others by their mean.
    """
    shown = next(iter(evaluations.values())).shown
    by_class = zip(*(100 * evaluation.iou for evaluation in evaluations.values()))
    scores = [_score(name, row) for name, row, seen in zip(classes, by_class, shown) if seen]
    if len(evaluations) == 2:
        return sorted(scores, key=lambda score: -(score.difference or 0))
    return sorted(scores, key=lambda score: -sum(value or 0 for value in score.values))


def mean_score(evaluations: Mapping[str, Evaluation]) -> Score:
    """Returns mIoU, the mean over the classes that have an IoU."""
    return _score('mean', [100 * np.nanmean(e.iou) for e in evaluations.values()])


def score_table(scores: Sequence[Score], runs: Sequence[str]) -> Table:
    """Formats scores, a row each; the last column is the difference of two runs."""
    header = ['class', *runs, *['difference'] * (len(runs) == 2)]
    rows = []
    for score in scores:
        cells = ['' if value is None else f'{value:.1f}' for value in score.values]
        if len(runs) == 2:
            cells.append('' if score.difference is None else signed(score.difference))
        rows.append([score.name, *cells])
    return Table(header, rows)


def _score(name: object, percents: Iterable[float]) -> Score:
    values = [None if np.isnan(value) else round(float(value), 1) for value in percents]
    # the difference of what is shown
    before, after = values if len(values) == 2 else (None, None)
    points = None if before is None or after is None else round(after - before, 1)
    return Score(str(name), values, points)


def mean_by_run(evaluations: Mapping[str, Evaluation]) -> str:
    """Lists the mIoU of each run."""
    means = zip(evaluations, mean_score(evaluations).values)
    return ', '.join(f'{run} {value:.1f} %' for run, value in means)


def mean_verdict(evaluations: Mapping[str, Evaluation], scores: Sequence[Score]) -> str:
    """Says how runs compare, by their mIoU and their scores of the classes.

    Two runs are level if the difference is below `LEVEL` points or below what a single image of the
    test set can change.
    """
    if len(evaluations) != 2:
        return f'mIoU on the test set: {mean_by_run(evaluations)}.'
    mean = mean_score(evaluations)
    (first, second), (before, after) = evaluations, mean.values
    points, image = mean.difference or 0.0, _of_one_image(*evaluations.values())
    numbers = f'{after:.1f} against {before:.1f} % mIoU'
    if abs(points) < max(LEVEL, image):
        reason = f'less than {LEVEL} points tell nothing with one run each'
        if image > LEVEL:
            reason = f'a single test image moves the difference by up to {image:.1f} points'
        text = f'{second} is level with {first}: {numbers}; {reason}.'
    else:
        relation = 'ahead of' if points > 0 else 'behind'
        text = f'{second} is {relation} {first} by {abs(points)} points: {numbers}.'
    gains = [score.difference for score in scores if score.difference is not None]
    better, worse = sum(gain > 0 for gain in gains), sum(gain < 0 for gain in gains)
    text += f' It is better in {better} of {len(gains)} classes, worse in {worse}.'
    return f'{text} {ONE_RUN_EACH}'


def _of_one_image(before: Evaluation, after: Evaluation) -> float:
    """Returns by how many points leaving out one image changes the difference in mIoU at most."""
    if len(before.confusion) < 2:
        return 100.0
    # A jackknife: test sets of ours are small, and one image may decide over a whole class.
    parts = []
    for evaluation in (before, after):
        total = evaluation.confusion.sum(0)
        without = [np.nanmean(iou_of(total - image)) for image in evaluation.confusion]
        parts.append(np.array(without) - np.nanmean(iou_of(total)))
    return float(100 * np.abs(parts[1] - parts[0]).max())
