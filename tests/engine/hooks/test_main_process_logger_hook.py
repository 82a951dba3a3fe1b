import pytest
from mmengine.config import Config
from mmengine.hooks import LoggerHook

from mmseg_cct.apis.device import fit_to_device
from mmseg_cct.engine.hooks import MainProcessLoggerHook


@pytest.mark.parametrize('rank, written', [(0, ['metrics']), (1, [])])
def test_only_the_main_process_writes_the_metrics(monkeypatch, rank, written):
    calls = []
    monkeypatch.setattr(LoggerHook, 'after_test_epoch', lambda self, runner: calls.append(runner))
    monkeypatch.setattr('mmengine.dist.utils.get_rank', lambda group=None: rank)
    MainProcessLoggerHook().after_test_epoch('metrics')
    assert calls == written


@pytest.mark.parametrize(
    'launcher, kind', [('none', 'LoggerHook'), ('pytorch', 'MainProcessLoggerHook')]
)
def test_a_distributed_run_uses_it(launcher, kind):
    hooks = dict(logger=dict(type='LoggerHook', interval=5))
    config = Config(dict(model=dict(), default_hooks=hooks))
    logger = fit_to_device(config, launcher).default_hooks.logger
    assert logger == dict(type=kind, interval=5)
