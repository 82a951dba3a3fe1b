"""Verdicts on gains by Student's t, corrected for multiple comparisons by Holm."""

import math
from collections.abc import Sequence
from statistics import mean, stdev

from scipy.stats import t as student

LEVEL = 0.05
MIN_PAIRS = 3  # fewer can agree by chance
# Figures are kept to a tenth, so equal gains of two pairs do not show that they never vary.
ROUNDING = 0.1 / math.sqrt(6)  # standard deviation of the difference of two rounded figures


def p_value(gains: Sequence[float]) -> float:
    """Two-sided p of a mean gain of 0 by Student's t; 1 for a single gain, which shows nothing."""
    if len(gains) < 2:
        return 1.0
    error = max(stdev(gains), ROUNDING) / math.sqrt(len(gains))
    return float(2 * student.sf(abs(mean(gains)) / error, len(gains) - 1))


def holm(p_values: Sequence[float]) -> list[float]:
    """Corrects p for the number of comparisons (Holm, 1979).

    The chance of any false verdict among them is at most the level that p is compared with.
    """
    corrected = [0.0] * len(p_values)
    highest = 0.0
    for rank, index in enumerate(sorted(range(len(p_values)), key=p_values.__getitem__)):
        highest = max(highest, min(1.0, (len(p_values) - rank) * p_values[index]))
        corrected[index] = highest
    return corrected


def verdicts(comparisons: Sequence[Sequence[float]]) -> list[str]:
    """Says whether each list of gains is ahead or behind, corrected for the number of lists.

    Fewer than `MIN_PAIRS` gains are no comparison: they get no verdict and do not count.
    """
    several = [gains for gains in comparisons if len(gains) >= MIN_PAIRS]
    corrected = iter(holm([p_value(gains) for gains in several]))
    return [
        f'{verdict(gains, next(corrected))}, {len(gains)} pairs'
        if len(gains) >= MIN_PAIRS
        else f'fewer than {MIN_PAIRS} pairs'
        for gains in comparisons
    ]


def verdict(gains: Sequence[float], corrected: float) -> str:
    """Puts the verdict of a corrected p into words."""
    if corrected < LEVEL:
        return 'ahead' if mean(gains) > 0 else 'behind'
    return 'no difference shown'
