import math

import pytest

from mmseg_cct.engine.schedules import SCHEDULES

T = 200

# (at 0, at T/2, at T), from the equations
VALUES = dict(
    gaussian=(math.exp(-5), math.exp(-1.25), 1),
    exp=(math.exp(-5), math.exp(-2.5), 1),
    linear=(0, 0.5, 1),
    log=(0, 1 - math.exp(-2.5), 1 - math.exp(-5)),
)


@pytest.mark.parametrize('name', SCHEDULES)
def test_each_rises_within_0_and_1_to_1(name):
    schedule = SCHEDULES[name]
    assert [schedule(t, T) for t in (0, T / 2, T)] == pytest.approx(VALUES[name], abs=1e-12)
    values = [schedule(t, T) for t in range(T + 1)]
    assert values == sorted(values) and len(set(values)) == T + 1
    assert min(values) >= 0 and max(values) <= 1
    assert schedule(-1, T) == values[0]
    assert schedule(0, 0) == schedule(100 * T, T) == 1  # a ramp of length 0 is over at once
    if name == 'log':  # η = min(α, (1 - exp(-5 t/T)) (α - 1/C) + 1/C) rises after T, too
        assert schedule(2 * T, T) == pytest.approx(1 - math.exp(-10), abs=1e-12)
    else:
        assert schedule(T + 1, T) == values[-1] == 1
