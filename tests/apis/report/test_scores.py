"""Rounded scores and the verdict on them, by hand."""

import numpy as np

from mmseg_cct.apis.report.evaluation import Evaluation
from mmseg_cct.apis.report.scores import Score, class_scores, mean_score, mean_verdict


def evaluation(*right, images=1000):
    """Equal images of ten pixels a class, of which so many are right and the others are ignored.

    A class of None is in no mask. An IoU is the share of right ones, as the last class takes the
    others and is in no mask either.
    """
    confusion = np.zeros((len(right) + 1, len(right) + 1), int)
    for index, number in enumerate(right):
        if number is not None:
            confusion[index, index], confusion[index, -1] = number, 10 - number
    return Evaluation(np.repeat(confusion[None], images, 0))


def both(**right):
    return {name: evaluation(*values) for name, values in right.items()}


def test_two_runs_are_sorted_by_the_difference_and_classes_without_a_mask_have_no_row():
    runs = both(a=[5, 5, 0, None], b=[4, 6, 0, None])
    scores = class_scores(runs, ['x', 'y', 'z', 'none', 'other'])
    assert scores == [
        Score('y', [50.0, 60.0], 10.0),
        Score('z', [0.0, 0.0], 0.0),
        Score('x', [50.0, 40.0], -10.0),
    ]
    # a false pixel of a class that no mask shows is a 0 in mIoU, as in MMSeg's
    assert mean_score(runs) == Score('mean', [25.0, 25.0], 0.0)
    third = class_scores(both(a=[1, 3], b=[2, 3], c=[9, 3]), ['x', 'y'])
    assert third == [Score('x', [10.0, 20.0, 90.0]), Score('y', [30.0, 30.0, 30.0])]


def verdict_on(**right):
    runs = {n: v if isinstance(v, Evaluation) else evaluation(*v) for n, v in right.items()}
    return mean_verdict(runs, class_scores(runs, ['x', 'y', 'z', 'w']))


def test_it_says_who_is_ahead_and_in_how_many_classes():
    said = verdict_on(sup=[5, 4], CCT=[7, 3])
    assert said.startswith('CCT is ahead of sup by 3.3 points: 33.3 against 30.0 % mIoU')
    assert 'better in 1 of 2 classes, worse in 1' in said
    assert verdict_on(sup=[7, 3], CCT=[5, 4]).startswith('CCT is behind sup by 3.3 points')


def test_runs_are_level_within_what_one_pair_cannot_show():
    assert verdict_on(sup=[5, 5], CCT=[5, 5]).startswith('CCT is level with sup')
    few = [evaluation(*right, images=5).confusion for right in ([9, 9], [5, 5])]
    good, mixed = few[0], np.concatenate([few[0][:4], few[1][:1]])
    assert 'a single test image' in verdict_on(sup=Evaluation(good), CCT=Evaluation(mixed))
