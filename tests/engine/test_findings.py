import pytest

from mmseg_cct.engine.findings import (
    class_iou,
    detection_scores,
    fall,
    findings,
    foreground_of,
    late_rise,
    validation_findings,
)


def test_classes_at_zero_are_named_and_counted():
    iou = class_iou({'mIoU': 30.0, 'IoU.road': 90.0, 'IoU.pole': 0.0, 'IoU.IoU.x': 0.0, 'aAcc': 0})
    assert iou == {'road': 90.0, 'pole': 0.0, 'IoU.x': 0.0}
    (line,) = findings([], iou)
    assert line.startswith('2 of 3 classes at IoU 0, no pixel found: pole, IoU.x')
    (line,) = findings([], {f'c{index}': 0.0 for index in range(12)})
    assert line.startswith('12 of 12') and line.endswith('c7, …') and 'c8' not in line


@pytest.mark.parametrize(
    ('curve', 'rise'),
    [
        ([10.0, 20.0, 22.5], 2.5),
        ([10, 20, 20.9], None),
        ([10, 30, 25], None),
        ([10, 20], None),
        ([], None),
        # of eight validations the last two
        ([1, 2, 3, 4, 5, 10, 10, 11], 1),
        ([1, 2, 3, 4, 5, 6, 10, 9], 4),
    ],
)
def test_a_curve_that_still_rises(curve, rise):
    assert late_rise(curve) == rise
    said = [line for line in findings(curve, {'a': 1.0}) if 'rose' in line]
    assert len(said) == (rise is not None)


@pytest.mark.parametrize(
    ('curve', 'points'),
    [
        ([10.0, 20.0, 17.0], 3.0),
        ([10, 20, 17.1], None),
        ([20, 10, 20], None),
        ([20, 10], None),
        ([10, 55.7, 49.5], 6.2),
    ],
)
def test_a_curve_that_fell(curve, points):
    assert fall(curve) == (points and pytest.approx(points))
    lines = [line for line in findings(curve, {'a': 1.0}) if 'below its best' in line]
    assert len(lines) == (points is not None)
    if points:
        best = f'{curve[1]:.1f}, validation 2 of 3'
        assert lines[0].startswith(f'mIoU ended {points:.1f} points below its best ({best})')


def test_a_small_validation_set_and_one_that_is_the_test_set_are_told():
    assert not list(validation_findings(20, is_test_set=False))
    few, same = validation_findings(19, is_test_set=True)
    assert few.startswith('only 19 validation images') and 'test set' in same


@pytest.mark.parametrize(
    ('classes', 'expected'),
    [
        (('background', 'crack'), 1),
        (('crack', 'background'), 0),
        (('crack', '_Background_'), 0),
        (('road', 'other'), 1),
        (('a',), None),
        (('a', 'b', 'c'), None),
    ],
)
def test_the_foreground_of_two_classes(classes, expected):
    assert foreground_of(classes) == expected


def test_scores_of_a_class_by_hand():
    assert detection_scores(3, 4, 6) == pytest.approx({'F1': 60, 'precision': 75, 'recall': 50})
    assert set(detection_scores(0, 0, 0).values()) == {0}
