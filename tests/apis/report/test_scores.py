"""Rounded scores and the verdict on them, by hand."""

import numpy as np

from mmseg_cct.apis.finished_runs import Evaluation
from mmseg_cct.apis.report.scores import (
    Score,
    class_scores,
    foreground_scores,
    mean_score,
    mean_verdict,
    score_table,
)


def test_two_runs_are_sorted_by_the_difference():
    iou = dict(a=np.array([0.25, 0.5, 0]), b=np.array([0.125, 0.625, 0]))
    scores = class_scores(iou, ['x', 'y', 'z'])
    assert score_table([*scores, mean_score(iou)], list(iou)).rows == [
        ['y', '50.0', '62.5', '+12.5'],
        ['z', '0.0', '0.0', '+0.0'],
        ['x', '25.0', '12.5', '−12.5'],
        ['mean', '25.0', '25.0', '+0.0'],
    ]
    # the difference is that of what is shown
    iou = dict(a=np.array([0.77459]), b=np.array([0.82141]))  # 4.682
    assert class_scores(iou, ['x']) == [Score('x', [77.5, 82.1], 4.6)]


def test_other_numbers_of_runs_are_sorted_by_the_mean():
    iou = dict(a=np.array([0.1, 0.3]), b=np.array([0.2, 0.3]), c=np.array([0.9, 0.3]))
    scores = class_scores(iou, ['x', 'y'])
    assert scores == [Score('x', [10.0, 20.0, 90.0]), Score('y', [30.0, 30.0, 30.0])]
    table = score_table(scores, list(iou))
    assert table.header == ['class', 'a', 'b', 'c'] and table.rows[1] == ['y', *['30.0'] * 3]


def test_absent_classes_are_left_out_of_the_mean():
    iou = dict(only=np.array([0.5, np.nan]))
    scores = [*class_scores(iou, ['x', 'y']), mean_score(iou)]
    assert score_table(scores, ['only']).rows == [['x', '50.0'], ['y', ''], ['mean', '50.0']]
    pair = class_scores(dict(a=np.array([np.nan]), b=np.array([0.2])), ['y'])
    assert score_table(pair, ['a', 'b']).rows == [['y', '', '20.0', '']]


def verdict_on(**iou):
    iou = {name: np.array(values) for name, values in iou.items()}
    classes = ['x', 'y', 'z'][: len(next(iter(iou.values())))]
    return mean_verdict(list(iou), class_scores(iou, classes), mean_score(iou))


def test_it_says_who_is_ahead_and_where():
    sup, cct = [0.5, 0.4, np.nan], [0.7, 0.3, np.nan]
    assert verdict_on(sup=sup, CCT=cct) == (
        'CCT is ahead of sup by 5.0 points: 50.0 against 45.0 % mIoU. It is better in 1 of 2 '
        'classes, worse in 1; biggest gain: x (+20.0); biggest loss: y (−10.0). One run each: '
        'another seed gives another figure.'
    )
    assert verdict_on(sup=cct, CCT=sup).startswith('CCT is behind sup by 5.0 points: 45.0 against')
    assert 'better in 2 of 2 classes, worse in 0; biggest gain: x (+20.0). One' in verdict_on(
        sup=sup, CCT=[0.7, 0.5, np.nan]
    )


def test_ties_are_told():
    said = verdict_on(sup=[0.5, 0, 0], CCT=[0.4, 0, 0])
    assert 'better in 0 of 3 classes, worse in 1 and equal in 2; biggest loss: x (−10.0).' in said
    assert verdict_on(sup=[0.5, 0.4], CCT=[0.5002, 0.3998]).startswith(
        'CCT is level with sup: 45.0 against 45.0 % mIoU. It is better in 0 of 2 classes, worse '
        'in 0 and equal in 2. One run each'
    )
    assert verdict_on(one=[0.5]) == 'mIoU on the test set: one 50.0 %.'


def test_of_two_classes_the_foreground_is_the_headline_and_has_more_scores():
    run = Evaluation(np.array([0.99, 0.25]), np.ones(1), np.array([[9, 2], [11, 4], [9, 6]]))
    none = Evaluation(np.array([0.9, 0]), np.ones(1), np.array([[9, 0], [9, 0], [9, 6]]))
    classes = ['background', 'crack']
    scores, said = foreground_scores(dict(sup=none, CCT=run), classes, 1)
    assert scores == [
        Score('F1 of crack', [0.0, 40.0], 40.0),
        Score('precision of crack', [0.0, 50.0], 50.0),
        Score('recall of crack', [0.0, 33.3], 33.3),
    ]
    assert said.startswith(
        'IoU of crack in %: sup 0.0 (F1 0.0, precision 0.0, recall 0.0); '
        'CCT 25.0 (F1 40.0, precision 50.0, recall 33.3).'
    )
