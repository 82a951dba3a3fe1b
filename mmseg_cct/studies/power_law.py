"""A power law of mIoU over the number of labels, to extrapolate beyond the largest number run."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from scipy.optimize import curve_fit
from scipy.stats import t as student

# Range of the exponent: near 0 the law is a line in log n, at 2 the curve soon flattens.
_EXPONENTS = 0.02, 2.0
# What a fit takes: as many numbers of labels as parameters, and a run more.
MIN_NUMBERS, MIN_RUNS = 3, 4


class PowerLaw(NamedTuple):
    """mIoU(n) = a - b n^-c, fitted to runs by least squares.

    `covariance` is that of (a, b, c), and `degrees` is the number of runs less these three.
    """

    a: float
    b: float
    c: float
    covariance: np.ndarray
    degrees: int

    def gain(self, start: float, end: float) -> tuple[float, float]:
        """mIoU that `end` labels add over `start`, and half the width of its 95 % interval."""
        before, after = start**-self.c, end**-self.c
        slope = self.b * (np.log(end) * after - np.log(start) * before)
        gradient = np.array([0.0, before - after, slope])
        deviation = np.sqrt(max(gradient @ self.covariance @ gradient, 0.0))
        half = student.ppf(0.975, self.degrees) * deviation
        return self.b * (before - after), float(half)


def fit_power_law(labels: Sequence[float], miou: Sequence[float]) -> PowerLaw | None:
    """Fits the law to runs; None for fewer than `MIN_NUMBERS` of labels or `MIN_RUNS`."""
    n, y = np.asarray(labels, float), np.asarray(miou, float)
    degrees = len(n) - 3
    if len(set(labels)) < MIN_NUMBERS or len(n) < MIN_RUNS:
        return None
    start = (y.max(), np.ptp(y), 0.5)
    bounds = ((-np.inf, -np.inf, _EXPONENTS[0]), (np.inf, np.inf, _EXPONENTS[1]))
    (a, b, c), covariance = curve_fit(
        _law, n, y, start, bounds=bounds, x_scale='jac', max_nfev=10_000
    )
    return PowerLaw(float(a), float(b), float(c), covariance, degrees)


def _law(n: np.ndarray, a: float, b: float, c: float) -> np.ndarray:
    return a - b * n**-c
