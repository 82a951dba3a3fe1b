"""Compares runs in a sentence."""

from collections.abc import Mapping, Sequence

import numpy as np

from mmseg_cct.evaluation.findings import detection_scores, foreground_of
from mmseg_cct.utils.text import signed

from .finished_runs import Evaluation
from .scores import Score

_ONE_RUN_EACH = 'One run each: another seed gives another figure.'


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


def foreground_verdict(evaluations: Mapping[str, Evaluation], classes: Sequence[str]) -> str | None:
    """Says how well the runs find the foreground of two classes; None if there are not two."""
    index = foreground_of(classes)
    if index is None:
        return None
    parts = []
    for name, evaluation in evaluations.items():
        scores = detection_scores(*evaluation.areas[:, index])
        found = ', '.join(f'{key} {value:.1f}' for key, value in scores.items())
        parts.append(f'{name} {100 * np.nan_to_num(evaluation.iou[index]):.1f} ({found})')
    one = f' {_ONE_RUN_EACH}' if len(parts) > 1 else ''
    return f'IoU of {classes[index]} in %: {"; ".join(parts)}.{one}'
