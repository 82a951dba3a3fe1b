import math

import pytest

from mmseg_cct.errors import UserError
from mmseg_cct.studies.results import Result, collect, gains_table, holm, p_value, verdicts


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
    given = [clear, weak, [1.0, -1.0, 0.5], [9.0, 9.0]]
    nothing = 'no difference shown, 3 pairs'
    assert verdicts(given) == ['ahead, 3 pairs', nothing, nothing, 'fewer than 3 pairs']
    assert verdicts([[-gain for gain in clear]]) == ['behind, 3 pairs']


def test_gains_are_those_of_pairs():
    """By hand: mean of 2, 4 and 3, standard deviation 1, t of two degrees of freedom 4.303."""
    results = [
        *(Result('supervised', '20', seed, miou) for seed, miou in enumerate([40.0, 30.0, 35.0])),
        *(Result('cct', '20', seed, miou) for seed, miou in enumerate([42.0, 34.0, 38.0, 99.0])),
        *(Result('kl', '20', seed, miou) for seed, miou in enumerate([38.0, 31.0, 35.0])),
        *(Result('js', '20', seed, miou) for seed, miou in enumerate([38.0, 28.5])),
        Result('cct-abce', '20', 1, 33.0),
        Result('cct-abce', '50', 1, 33.0),
    ]
    methods = ['supervised', 'cct', 'kl', 'js', 'cct-abce']
    rows = gains_table(results, methods, 'supervised').rows
    assert rows == [
        ['cct', '20', '+3.0', '±2.5', '+2.0 +4.0 +3.0', 'no difference shown, 3 pairs'],
        ['kl', '20', '−0.3', '±3.8', '−2.0 +1.0 +0.0', 'no difference shown, 3 pairs'],
        ['js', '20', '−1.8', '±3.2', '−2.0 −1.5', 'fewer than 3 pairs'],
        ['cct-abce', '20', '+3.0', '', '+3.0', 'fewer than 3 pairs'],
    ]
    alone = gains_table(results, ['cct'], 'supervised')  # the only comparison
    assert alone.rows[0][-2:] == ['+2.0 +4.0 +3.0', 'ahead, 3 pairs']
    assert not gains_table(results[:3], methods, 'supervised').rows


def test_a_test_without_miou_is_an_error(tmp_path):
    folder = tmp_path / 'a' / '20' / 'seed0' / 'test' / '1'
    folder.mkdir(parents=True)
    for metrics in ('{"mDice": 3}', '{"mIoU": NaN}'):
        (folder / '1.json').write_text(metrics)
        with pytest.raises(UserError, match='seed0: its test gave'):
            collect(tmp_path)
