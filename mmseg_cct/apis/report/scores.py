"""Scores as a report shows them, in % to one digit, and how runs compare by them in a sentence."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from mmseg_cct.utils.templates import Table
from mmseg_cct.utils.text import signed

from .evaluation import Evaluation, iou_of

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
    """Formats scores, a row each; the last column is the difference of two runs.

    Classes at 0.0 in all runs share a row.
    """
    two = len(runs) == 2
    zero = [score.name for score in scores if not any(score.values)]
    named = ', '.join(zero[:4]) + (', …' if len(zero) > 4 else '')
    rows = [
        [
            score.name,
            *('' if value is None else f'{value:.1f}' for value in score.values),
            *(['' if score.difference is None else signed(score.difference)] * two),
        ]
        for score in scores
        if len(zero) < 2 or score.name not in zero
    ]
    if len(zero) > 1:
        empty = [f'{len(zero)} found by no run: {named}', *['0.0'] * len(runs), *[''] * two]
        rows.insert(len(rows) - 1, empty)
    return Table(['class', *runs, *['difference'] * two], rows)


def _score(name: object, percents: Iterable[float]) -> Score:
    values = [None if np.isnan(value) else round(float(value), 1) for value in percents]
    # the difference of what is shown
    before, after = values if len(values) == 2 else (None, None)
    points = None if before is None or after is None else round(after - before, 1)
    return Score(str(name), values, points)


def mean_verdict(evaluations: Mapping[str, Evaluation], scores: Sequence[Score]) -> str:
    """Says how runs compare, by their mIoU and their scores of the classes.

    Two runs are level if the difference is below `LEVEL` points or below what a single image of the
    test set can change.
    """
    mean = mean_score(evaluations)
    if len(evaluations) != 2:
        figures = ', '.join(f'{run} {value:.1f} %' for run, value in zip(evaluations, mean.values))
        return f'mIoU on the test set: {figures}.'
    (first, second), (before, after) = evaluations, mean.values
    points, image = mean.difference or 0.0, _of_one_image(*evaluations.values())
    figures = f'{after:.1f} against {before:.1f} % mIoU'
    if abs(points) < max(LEVEL, image):
        reason = f'less than {LEVEL} points tell nothing with one run each'
        if image > LEVEL:
            reason = f'a single test image moves the difference by up to {image:.1f} points'
        text = f'{second} is level with {first}: {figures}; {reason}.'
    else:
        relation = 'ahead of' if points > 0 else 'behind'
        text = f'{second} is {relation} {first} by {abs(points)} points: {figures}.'
    return f'{text} {_by_class(scores)} {ONE_RUN_EACH}'


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


def _by_class(scores: Sequence[Score]) -> str:
    """Counts the classes that gain and lose, and names those that do most."""
    gains = {score.name: score.difference for score in scores if score.difference is not None}
    known = {s.name: gains[s.name] for s in scores if s.name in gains and any(s.values)}
    better = sum(gain > 0 for gain in known.values())
    worse = sum(gain < 0 for gain in known.values())
    text = f'It is better in {better} of {len(known)} classes'
    text += f', worse in {worse}'
    if missed := len(gains) - len(known):
        text += f'; {missed} found by neither'
    if better:
        best = max(known, key=known.__getitem__)
        text += f'; biggest gain: {best} ({signed(known[best])})'
    if worse:
        last = min(known, key=known.__getitem__)
        text += f'; biggest loss: {last} ({signed(known[last])})'
    return f'{text}.'
