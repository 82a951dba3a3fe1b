"""Rounded scores, by hand."""

import numpy as np

from mmseg_cct.analysis.finished_runs import Evaluation
from mmseg_cct.analysis.scores import (
    Score,
    class_scores,
    foreground_scores,
    mean_score,
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


def test_the_difference_is_that_of_what_is_shown():
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


def test_the_foreground_of_two_classes_has_more_scores():
    run = Evaluation(np.array([0.99, 0.25]), np.ones(1), np.array([[9, 2], [11, 4], [9, 6]]))
    assert foreground_scores(dict(a=run), ['background', 'crack']) == [
        Score('F1 of crack', [40.0]),
        Score('precision of crack', [50.0]),
        Score('recall of crack', [33.3]),
    ]
    assert foreground_scores(dict(a=run), ['a', 'b', 'c']) == []
