"""The power law: recovered from exact points, and honest on the runs of docs/results.csv."""

import csv
from collections import defaultdict

import numpy as np
import pytest

from mmseg_cct.studies.power_law import fit_power_law


def test_an_exact_law_is_found_again():
    n = [5, 10, 20, 40, 80]
    law = fit_power_law(n, [60 - 40 * x**-0.5 for x in n])
    assert (law.a, law.b, law.c) == pytest.approx((60, 40, 0.5), rel=1e-6)
    gain, half = law.gain(80, 90)
    assert gain == pytest.approx(40 * (80**-0.5 - 90**-0.5))
    assert half < 1e-6


@pytest.mark.parametrize(
    ('labels', 'miou'), [([5, 5, 20, 20], [1, 2, 3, 4]), ([5, 10, 20], [1, 2, 3])]
)
def test_too_few_runs_give_no_law(labels, miou):
    assert fit_power_law(labels, miou) is None


@pytest.mark.parametrize('method', ['supervised', 'cct-strong'])
@pytest.mark.parametrize(('largest', 'held_out', 'off'), [(20, 50, 2.1), (50, 100, 1.0)])
def test_the_interval_holds_what_was_held_out(project_root, method, largest, held_out, off):
    """On IDD Lite at equal iterations, as docs/studies.md says."""
    by_labels = defaultdict(dict)
    with (project_root / 'docs/results.csv').open() as file:
        for run in csv.DictReader(file):
            same = (run['data_set'], run['iterations'], run['method']) == (
                'idd_lite',
                '1200',
                method,
            )
            if same:
                by_labels[int(run['labels'])][run['seed']] = float(run['miou'])
    points = [(n, miou) for n in by_labels if n <= largest for miou in by_labels[n].values()]
    gain, half = fit_power_law(*zip(*points)).gain(largest, held_out)
    before, after = by_labels[largest], by_labels[held_out]
    truth = np.mean([after[seed] - before[seed] for seed in before.keys() & after.keys()])
    assert abs(gain - truth) < min(off, half)


def test_the_interval_is_that_of_least_squares():
    """Pairs of equal and opposite errors leave the law as it is."""
    n, truth = np.repeat([5.0, 10, 20, 40], 2), np.array([60, 40, 0.5])
    miou = 60 - 40 * n**-0.5 + np.tile([1.5, -1.5], 4)
    slopes = np.stack([np.ones_like(n), -(n**-0.5), 40 * np.log(n) * n**-0.5], axis=1)
    covariance = np.linalg.inv(slopes.T @ slopes) * 8 * 1.5**2 / 5
    gradient = [0, 40**-0.5 - 80**-0.5, 40 * (np.log(80) * 80**-0.5 - np.log(40) * 40**-0.5)]
    deviation = np.sqrt(gradient @ covariance @ gradient)
    law = fit_power_law(n.tolist(), miou.tolist())
    assert law[:3] == pytest.approx(truth)
    # Student's t of five degrees of freedom
    assert law.gain(40, 80)[1] == pytest.approx(2.571 * deviation, rel=1e-3)


def test_no_exponent_fits_better():
    """Against a search over exponents, given which a and b are a linear fit."""
    rng = np.random.default_rng(0)
    n = np.repeat([5.0, 10, 20, 40], 2)
    for _ in range(20):
        miou = 70 - rng.uniform(0, 200) * n ** -rng.uniform(0.05, 1.5) + rng.normal(0, 1, 8)
        law = fit_power_law(n.tolist(), miou.tolist())
        residues = []
        for c in np.linspace(0.02, 2, 100):
            design = np.stack([np.ones_like(n), -(n**-c)], axis=1)
            a, b = np.linalg.lstsq(design, miou, rcond=None)[0]
            residues.append(np.square(miou - a + b * n**-c).sum())
        residue = np.square(miou - law.a + law.b * n**-law.c).sum()
        assert residue <= min(residues) * (1 + 1e-6)
