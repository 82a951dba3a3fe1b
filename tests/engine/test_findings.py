import pytest

from mmseg_cct.engine.findings import findings


def test_classes_at_zero_are_named_and_counted():
    (line,) = findings([], {'road': 90.0, 'pole': 0.0, 'IoU.x': 0.0})
    assert line.startswith('2 of 3 classes at IoU 0, no pixel found: pole, IoU.x')
    (line,) = findings([], {f'c{index}': 0.0 for index in range(12)})
    assert line.startswith('12 of 12') and 'c7, …;' in line and 'c8' not in line


@pytest.mark.parametrize(
    ('curve', 'said'),
    [
        ([10.0, 20.0, 22.5], 'mIoU rose by 2.5 points'),
        ([10, 20, 20.9], None),
        ([10, 20], None),
        ([1, 2, 3, 4, 5, 6, 10, 9], 'mIoU rose by 4.0 points'),  # in the last two
        ([10.0, 20.0, 17.0], 'mIoU ended 3.0 points below its best (20.0, validation 2 of 3)'),
        ([10, 20, 17.1], None),
    ],
)
def test_a_curve_that_still_rises_or_fell(curve, said):
    lines = list(findings(curve, {'a': 1.0}))
    assert len(lines) == (said is not None)
    assert not lines or lines[0].startswith(said)
