"""The ETA leaves out the iterations that compile."""

import time
from types import SimpleNamespace

import pytest
from mmengine.logging import MessageHub

from mmseg_cct.engine.hooks import SteadyTimerHook
from mmseg_cct.errors import UserError


@pytest.fixture
def etas(monkeypatch):
    """Estimates after each iteration, given the seconds that they take."""

    def run(seconds, max_iters, start=0, **kwargs):
        now = [0.0]
        monkeypatch.setattr(time, 'time', lambda: now[0])
        runner = SimpleNamespace(
            iter=start, max_iters=max_iters, message_hub=MessageHub('steady timer test')
        )
        hook = SteadyTimerHook(**kwargs)
        hook.before_train(runner)
        hook.before_train_epoch(runner)
        found = []
        for duration in seconds:
            hook.before_train_iter(runner, 0)
            now[0] += duration
            hook.after_train_iter(runner, 0)
            found.append(runner.message_hub.get_info('eta'))
            runner.iter += 1
        return found

    return run


def test_the_first_iterations_do_not_count(etas):
    assert etas([60, 8, 2, 2, 2, 4], 100, warm_up=3) == pytest.approx(
        [60 * 99, 8 * 98, 2 * 97, 2 * 96, 2 * 95, 8 / 3 * 94]
    )


def test_a_resumed_training_warms_up_again(etas):
    assert etas([60, 2, 2], 1000, start=900, warm_up=1) == pytest.approx([60 * 99, 2 * 98, 2 * 97])


def test_without_warm_up_it_is_mmengines(etas):
    assert etas([9, 1], 10, warm_up=0)[1] == pytest.approx(5 * 8)


def test_a_negative_number_is_refused():
    with pytest.raises(
        UserError, match=r'SteadyTimerHook\.warm_up=-1: expected a whole number from 0'
    ):
        SteadyTimerHook(-1)
