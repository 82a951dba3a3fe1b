import re

import pytest

from mmseg_cct.writer import training_time
from mmseg_cct.writer.training_time import describe_training_time


@pytest.mark.slow
def test_a_drawn_training_is_timed(monkeypatch):
    line = describe_training_time('demo/cct_shapes.py')
    assert re.fullmatch(r'1400 iterations at about \S+ s here: \d.*, without validations', line)


def test_the_time_of_two_pairs_is_scaled_to_the_batch(monkeypatch):
    monkeypatch.setattr(training_time, '_seconds_of_pairs', lambda config: 0.5)
    line = describe_training_time('cct/cct_mbv2-jpu_folder.py')
    assert line == '4000 iterations at about 2.5 s here: 2:46:40, without validations'  # 10 pairs
    monkeypatch.setattr(training_time, '_seconds_of_pairs', lambda config: 1 / 0)
    line = describe_training_time('cct/cct_mbv2-jpu_folder.py')
    assert line == 'no estimate of the time: ZeroDivisionError: division by zero'
