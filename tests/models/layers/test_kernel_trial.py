import time

import pytest
import torch

from mmseg_cct.models.layers import kernel_trial
from mmseg_cct.models.layers.kernel_trial import wins_trial

SMALL, LARGE = (torch.ones(2),), (torch.ones(3),)


@pytest.fixture(autouse=True)
def fresh(monkeypatch):
    monkeypatch.setattr(kernel_trial, '_results', {})


def way(milliseconds=0.0, factor=1.0):
    def run(x):
        time.sleep(milliseconds / 1000)
        return (factor * x, [x]), (x.sum(),), None

    return run


def fails_on_a_whole_chunk(x):
    if len(x) > 2:
        raise torch.cuda.OutOfMemoryError('CUDA out of memory\nand a long explanation')
    return way()(x)


@pytest.mark.parametrize(
    ('kernel', 'current', 'won', 'verdict'),
    [
        (way(), way(5), True, 'ms a chunk'),
        (way(5), way(), False, 'ms a chunk'),
        (way(factor=1.1), way(5), False, 'off by 0.1'),
        (way(factor=torch.nan), way(5), False, 'off by nan'),
        (fails_on_a_whole_chunk, way(5), False, 'OutOfMemoryError'),
    ],
)
def test_a_kernel_replaces_what_runs_if_it_is_right_and_faster(
    messages, kernel, current, won, verdict
):
    for _ in range(2):  # measured and logged once
        assert wins_trial('key', kernel, current, way(), lambda: (SMALL, LARGE)) == won
    assert len(messages) == 1 and verdict in messages[0] and '\n' not in messages[0]


def test_time_decides_nothing_where_runs_have_to_repeat(messages):
    torch.use_deterministic_algorithms(True)
    try:
        assert wins_trial('key', way(5), way(), way(), lambda: (SMALL, LARGE))
        assert not wins_trial('other', way(factor=2), way(), way(), lambda: (SMALL, LARGE))
    finally:
        torch.use_deterministic_algorithms(False)
