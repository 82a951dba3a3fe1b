"""Scores as a report shows them, in % to one digit, and how runs compare by them in a sentence."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from mmseg_cct.engine.findings import detection_scores
from mmseg_cct.utils.templates import Table
from mmseg_cct.utils.text import signed

from ..finished_runs import Evaluation

_ONE_RUN_EACH = 'One run each: another seed gives another figure.'


@dataclass(frozen=True)
class Score:
    """A score of each run."""

    name: str  # the class, or `mean`
    values: list[float | None]  # in %, by run; None where a class neither occurs nor is predicted
    difference: float | None = None  # of two runs, the second minus the first


def tenths(percent: float) -> float | None:
    """Rounds a score in % to one digit; None for nan."""
    return None if np.isnan(percent) else round(float(percent), 1)


def difference(before: float | None, after: float | None) -> float | None:
    """Returns the difference of two rounded scores; None if one is missing."""
    return None if before is None or after is None else round(after - before, 1)


def class_scores(iou: Mapping[str, np.ndarray], classes: Sequence[str]) -> list[Score]:
    """Returns the IoU of each class from IoU `(C,)` in [0, 1] by run.

    The classes of two runs are sorted by the difference, others by their mean.
    """
    scores = [
        _score(name, 100 * np.array(by_run)) for name, by_run in zip(classes, zip(*iou.values()))
    ]
    if len(iou) == 2:
        return sorted(scores, key=lambda score: -(score.difference or 0))
    return sorted(scores, key=lambda score: -sum(value or 0 for value in score.values))


def mean_score(iou: Mapping[str, np.ndarray]) -> Score:
    """Returns the mean IoU over the classes that have one."""
    return _score('mean', [100 * np.nanmean(values) for values in iou.values()])


def foreground_scores(
    evaluations: Mapping[str, Evaluation], classes: Sequence[str], index: int
) -> tuple[list[Score], str]:
    """Returns F1, precision and recall of the class that a two-class task looks for.

    `evaluations` are by run, and `index` is that of the class. The sentence says how well the runs
    find it.
    """
    scores = [detection_scores(*each.areas[:, index]) for each in evaluations.values()]
    parts = []
    for (run, evaluation), found in zip(evaluations.items(), scores):
        each = ', '.join(f'{key} {value:.1f}' for key, value in found.items())
        parts.append(f'{run} {100 * np.nan_to_num(evaluation.iou[index]):.1f} ({each})')
    one = f' {_ONE_RUN_EACH}' if len(parts) > 1 else ''
    verdict = f'IoU of {classes[index]} in %: {"; ".join(parts)}.{one}'
    names = {key: f'{key} of {classes[index]}' for key in scores[0]}
    return [_score(names[key], [found[key] for found in scores]) for key in names], verdict


def score_table(scores: Sequence[Score], runs: Sequence[str]) -> Table:
    """Formats scores, a row each; the last column is the difference of two runs."""
    two = len(runs) == 2
    rows = [
        [
            score.name,
            *('' if value is None else f'{value:.1f}' for value in score.values),
            *(['' if score.difference is None else signed(score.difference)] * two),
        ]
        for score in scores
    ]
    return Table(['class', *runs, *['difference'] * two], rows)


def _score(name: object, percents: Iterable[float]) -> Score:
    values = [tenths(percent) for percent in percents]
    return Score(str(name), values, difference(*values) if len(values) == 2 else None)


def mean_verdict(runs: Sequence[str], scores: Sequence[Score], mean: Score) -> str:
    """Says how runs compare, by their scores of the classes and the mean of these.

    For two runs that is the difference in mIoU and the classes that gain and lose most, otherwise
    the mIoU of each run.
    """
    if len(runs) != 2:
        each = ', '.join(f'{run} {value:.1f} %' for run, value in zip(runs, mean.values))
        return f'mIoU on the test set: {each}.'
    (first, second), (before, after) = runs, mean.values
    points = mean.difference or 0.0
    relation = 'ahead of' if points > 0 else 'behind' if points < 0 else 'level with'
    distance = f' by {abs(points)} points' if points else ''
    return (
        f'{second} is {relation} {first}{distance}: {after:.1f} against {before:.1f} % mIoU. '
        f'{_by_class(scores)} {_ONE_RUN_EACH}'
    )


def _by_class(scores: Sequence[Score]) -> str:
    """Counts the classes that gain and lose, and names those that do most."""
    gains = {score.name: score.difference for score in scores if score.difference is not None}
    better = sum(gain > 0 for gain in gains.values())
    worse = sum(gain < 0 for gain in gains.values())
    text = f'It is better in {better} of {len(gains)} classes, worse in {worse}'
    if equal := len(gains) - better - worse:
        text += f' and equal in {equal}'
    best, worst = max(gains, key=gains.__getitem__), min(gains, key=gains.__getitem__)
    extremes = []
    if better:
        extremes.append(f'biggest gain: {best} ({signed(gains[best])})')
    if worse:
        extremes.append(f'biggest loss: {worst} ({signed(gains[worst])})')
    return '; '.join([text, *extremes]) + '.'
