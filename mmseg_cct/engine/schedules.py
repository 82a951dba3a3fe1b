"""Ramp curves: pure functions of the iteration `t` and the ramp's length `T`, in iterations.

Every curve maps `(t, T)` to [0, 1]. All but `log` are exactly 1 at and after `T`; `log` is 1 - e⁻⁵
at `T` and goes on to 1, as in the paper's equation for η (supplement, "Ramp-up functions").
"""

import math
from collections.abc import Callable

Schedule = Callable[[float, float], float]


def linear(t: float, length: float) -> float:
    """t/T, the share of the ramp that has passed; a ramp of length 0 is over at once."""
    return 1.0 if length <= 0 else min(max(t / length, 0.0), 1.0)


def gaussian(t: float, length: float) -> float:
    """exp(-5 (1 - t/T)²), the curve of Temporal Ensembling."""
    return math.exp(-5 * (1 - linear(t, length)) ** 2)


def exp(t: float, length: float) -> float:
    """exp(5 (t/T - 1)), the paper's curve for ω_u and ω_w."""
    return math.exp(5 * (linear(t, length) - 1))


def log(t: float, length: float) -> float:
    """1 - exp(-5 t/T), the paper's curve for η; a ramp of length 0 is over at once."""
    return 1 - math.exp(-5 * max(t, 0.0) / length) if length > 0 else 1.0


SCHEDULES: dict[str, Schedule] = dict(gaussian=gaussian, exp=exp, linear=linear, log=log)
