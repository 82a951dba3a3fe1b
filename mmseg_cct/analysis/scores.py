"""Scores as a report shows them: in %, to one digit, and differences that add up with these."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from mmseg_cct.evaluation.findings import detection_scores, foreground_of
from mmseg_cct.utils.markdown import Table
from mmseg_cct.utils.text import signed

from .finished_runs import Evaluation


@dataclass(frozen=True)
class Score:
    """A score of each run.

    Attributes:
        name: The class, or `mean`.
        values: In %, a value for each run; None where a class neither occurs nor is predicted.
        difference: Of two runs, the second minus the first.
    """

    name: str
    values: list[float | None]
    difference: float | None = None


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


def foreground_scores(evaluations: Mapping[str, Evaluation], classes: Sequence[str]) -> list[Score]:
    """Returns F1, precision and recall of the class that a two-class task looks for, if it is one.

    `evaluations` are by run.
    """
    index = foreground_of(classes)
    if index is None:
        return []
    found = [detection_scores(*each.areas[:, index]) for each in evaluations.values()]
    return [_score(f'{key} of {classes[index]}', [each[key] for each in found]) for key in found[0]]


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
