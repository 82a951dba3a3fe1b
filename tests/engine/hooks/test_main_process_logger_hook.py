import pytest
from mmengine.hooks import LoggerHook

from mmseg_cct.engine.hooks import MainProcessLoggerHook


@pytest.mark.parametrize('rank, written', [(0, ['metrics']), (1, [])])
def test_only_the_main_process_writes_the_metrics(monkeypatch, rank, written):
    calls = []
    monkeypatch.setattr(LoggerHook, 'after_test_epoch', lambda self, runner: calls.append(runner))
    monkeypatch.setattr('mmengine.dist.utils.get_rank', lambda group=None: rank)
    MainProcessLoggerHook().after_test_epoch('metrics')
    assert calls == written
