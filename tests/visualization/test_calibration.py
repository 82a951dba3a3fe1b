"""Reliability diagrams: their panels, and the files."""

import json

import numpy as np
import pytest

from mmseg_cct.evaluation.calibration import Reliability
from mmseg_cct.visualization.calibration import plot_reliability, write_calibration_files


@pytest.fixture
def reliability():
    fine = Reliability(np.linspace(0.05, 0.95, 20), np.full(20, 2), np.arange(20) // 10)
    coarse = np.array([0.0, 0.25, 0.5, 0.75, 1.0])
    return dict(
        confidence=fine, agreement=Reliability(coarse, np.full(5, 8), np.array([0, 2, 4, 6, 8]))
    )


def test_a_panel_for_each_score(reliability):
    panels = plot_reliability(reliability).axes
    assert [axes.get_xlabel() for axes in panels] == ['confidence', 'agreement']
    drawn = panels[1].lines[1]
    np.testing.assert_allclose(drawn.get_xdata(), [0, 0.25, 0.5, 0.75, 1])
    np.testing.assert_allclose(drawn.get_ydata(), [0, 0.25, 0.5, 0.75, 1])


def test_the_files_hold_what_is_returned(reliability, tmp_path):
    record = write_calibration_files(tmp_path, reliability, images=3)
    assert json.loads((tmp_path / 'calibration.json').read_text()) == record
    assert record['images'] == 3 and record['agreement']['calibration_error'] == 0
    assert (tmp_path / 'calibration.png').read_bytes().startswith(b'\x89PNG')


def test_the_files_of_no_pixel_are_written_too(tmp_path):
    none = Reliability(np.array([0.5]), np.zeros(1, np.int64), np.zeros(1, np.int64))
    record = write_calibration_files(tmp_path, dict(agreement=none))
    assert record['agreement']['calibration_error'] is None
    assert json.loads((tmp_path / 'calibration.json').read_text()) == record
