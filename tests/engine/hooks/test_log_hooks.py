import logging
from types import SimpleNamespace

from mmengine.hooks import LoggerHook
from mmengine.logging import MessageHub
from mmengine.runner import LogProcessor

from mmseg_cct.config.load import load_config
from mmseg_cct.engine.hooks import MainProcessLoggerHook, ProgressBarHook


def test_only_the_main_process_writes_the_metrics_of_a_test(monkeypatch):
    calls = []
    monkeypatch.setattr(LoggerHook, 'after_test_epoch', lambda self, runner: calls.append(runner))
    for rank in (0, 1):
        monkeypatch.setattr('mmengine.dist.utils.get_rank', lambda group=None, rank=rank: rank)
        MainProcessLoggerHook().after_test_epoch(rank)
    assert calls == [0]


def test_the_last_iteration_is_logged_whatever_the_interval(monkeypatch):
    used, hook = [], MainProcessLoggerHook(interval=50)
    monkeypatch.setattr(LoggerHook, 'after_train_iter', lambda self, *_: used.append(self.interval))
    for iteration in (5, 6):
        hook.after_train_iter(SimpleNamespace(iter=iteration, max_iters=7), iteration)
    assert used == [50, 1] and hook.interval == 50


def test_after_twenty_iterations_it_says_how_long_the_others_take(monkeypatch, messages):
    monkeypatch.setattr(LoggerHook, 'after_train_iter', lambda *_: None)
    hub, hook = MessageHub('time left'), MainProcessLoggerHook(interval=50)
    runner = SimpleNamespace(iter=100, max_iters=1120, message_hub=hub)
    hook.before_train(runner)  # resumed
    for runner.iter in range(100, 140):
        hub.update_scalar('train/time', 90.0 if runner.iter == 100 else 4.0)  # it compiles first
        hook.after_train_iter(runner, runner.iter - 100)
    (line,) = messages
    assert '1 h 7 min' in line  # 1000 of 4 s


def test_what_stands_beside_a_loss_is_averaged_over_the_same_iterations():
    settings = load_config('demo/cct_shapes', {}).log_processor
    hub, values = MessageHub('averages'), (1.0, 3.0)
    for value in values:
        for name in ('aux.loss', 'aux.consistency', 'a.aux.consistency', 'decode.acc_seg'):
            hub.update_scalar(f'train/{name}', value)
    runner = SimpleNamespace(message_hub=hub, iter=1, max_iters=2, _train_loop=object())
    runner.train_loop = runner._train_loop
    logged, _ = LogProcessor(**settings).get_log_after_iter(runner, 0, 'train')
    means = dict.fromkeys(('aux.loss', 'aux.consistency', 'a.aux.consistency'), 2.0)
    assert logged.items() >= {**means, 'decode.acc_seg': 3.0}.items()


def test_the_bar_counts_from_the_resumed_iteration_and_shows_the_loss(monkeypatch):
    logger = logging.Logger('progress bar test')
    logger.addHandler(handler := logging.StreamHandler())
    hub, hook = MessageHub('progress bar test'), ProgressBarHook()
    runner = SimpleNamespace(max_iters=10, iter=4, logger=logger, message_hub=hub)
    hook.before_train(runner)
    assert (hook.bar.n, hook.bar.total) == (4, 10)
    hook.after_train_iter(runner, 0)
    hub.update_scalar('train/loss', 1.25)
    hook.after_train_iter(runner, 1)
    assert hook.bar.n == 6 and 'loss=1.250' in str(hook.bar)
    assert logger.handlers != [handler]  # the log writes above it
    hook.after_train(runner)
    assert logger.handlers == [handler]
