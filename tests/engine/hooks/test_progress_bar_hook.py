"""The bar counts iterations, and the log goes on above it."""

import logging
from types import SimpleNamespace

from mmengine.logging import MessageHub

from mmseg_cct.engine.hooks import ProgressBarHook, progress_bar_hook


def make_runner():
    logger = logging.Logger('progress bar test')
    logger.addHandler(logging.StreamHandler())
    return SimpleNamespace(
        max_iters=10, iter=4, logger=logger, message_hub=MessageHub('progress bar test')
    )


def test_it_counts_from_the_resumed_iteration_and_shows_the_loss(capsys):
    runner, hook = make_runner(), ProgressBarHook()
    (handler,) = runner.logger.handlers
    hook.before_train(runner)
    assert (hook.bar.n, hook.bar.total) == (4, 10)
    hook.after_train_iter(runner, 0)
    runner.message_hub.update_scalar('train/loss', 1.25)
    hook.after_train_iter(runner, 1)
    assert hook.bar.n == 6 and 'loss=1.250' in str(hook.bar)
    hook.before_val(runner)
    assert str(hook.bar).startswith('validate')
    hook.after_val(runner)
    assert str(hook.bar).startswith('train')
    assert runner.logger.handlers != [handler]
    hook.after_train(runner)
    assert runner.logger.handlers == [handler]


def test_other_ranks_show_none(monkeypatch):
    monkeypatch.setattr(progress_bar_hook, 'is_main_process', lambda: False)
    runner, hook = make_runner(), ProgressBarHook()
    for step in (hook.before_train, hook.before_val, hook.after_val, hook.after_train):
        step(runner)
    hook.after_train_iter(runner, 0)
    assert hook.bar is None
