import math

import pytest

from mmseg_cct.studies.holm import holm, p_value, verdicts


def test_p_is_students():
    """By hand: of one degree of freedom 1 - 2 / π · atan(t), of two 1 - t / sqrt(t² + 2)."""
    t = 3 / (1 / 3**0.5)
    assert p_value([2, 4, 3]) == pytest.approx(1 - t / (t**2 + 2) ** 0.5)
    assert p_value([-2, -4, -3]) == p_value([2, 4, 3])
    assert (p_value([5]), p_value([0, 0])) == (1, 1)
    # equal gains vary by their rounding
    t = 2 * 2**0.5 / (0.1 / 6**0.5)
    assert p_value([2, 2]) == pytest.approx(1 - 2 / math.pi * math.atan(t))


def test_holm_steps_down():
    assert holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.03, 0.06, 0.06, 0.02])
    assert holm([0.9, 0.6]) == [1, 1]
    assert holm([]) == []


def test_a_gain_among_many_needs_more():
    clear, weak = [2.0, 2.1, 1.9], [2.0, 4.0, 3.0]  # p of 0.0008 and 0.035
    assert verdicts([weak]) == ['ahead, 3 pairs']
    noise = [1.0, -1.0, 0.5]
    assert verdicts([clear, weak, noise, [9.0, 9.0]]) == [
        'ahead, 3 pairs',
        'no difference shown, 3 pairs',
        'no difference shown, 3 pairs',
        'fewer than 3 pairs',
    ]
    assert verdicts([[-gain for gain in clear]]) == ['behind, 3 pairs']
