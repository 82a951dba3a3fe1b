import logging
import time
from datetime import timedelta
from types import SimpleNamespace

import pytest
import torch
from mmengine.config import Config
from mmengine.logging import MessageHub
from mmengine.runner import Runner
from torch.utils.data import DataLoader

from mmseg_cct.apis import runner as runner_module
from mmseg_cct.apis.runner import console_filter


@pytest.mark.skipif(torch.cuda.is_available(), reason='mmengine starts the group on a GPU')
def test_the_workers_of_a_distributed_run_end_by_themselves(tmp_path, monkeypatch):
    """They are told to: torch waits 5 s for each that is not."""
    start = torch.distributed.init_process_group
    store = dict(init_method=f'file://{tmp_path}/rendezvous', rank=0, world_size=1)
    waits = []
    monkeypatch.setattr(
        torch.distributed,
        'init_process_group',
        lambda name, timeout: waits.append(timeout) or start(name, **store),
    )

    def build(_):
        runner = Runner.__new__(Runner)
        loader = DataLoader(range(4), num_workers=2, persistent_workers=True)
        # loops and hooks know their runner
        runner._train_loop = SimpleNamespace(runner=runner, dataloader=loader)
        runner._hooks = []
        runner.train = lambda: next(iter(loader))  # starts the workers
        return runner

    monkeypatch.setattr(Runner, 'from_cfg', build)
    begun = time.monotonic()
    env = dict(dist_cfg=dict(timeout=7200))  # as long as the preflight of many images takes
    runner_module._run(Config(dict(launcher='pytorch', env_cfg=env)), 'train')
    assert time.monotonic() - begun < 5 and waits == [timedelta(hours=2)]


@pytest.mark.parametrize(
    ('line', 'shown'),
    [
        ('Config:\nmodel = 1', False),
        ('Training on 5 images', True),
        (ValueError('Config'), True),
    ],
)
def test_the_screen_is_spared_what_is_for_the_file(line, shown):
    record = logging.makeLogRecord(dict(msg=line))
    assert console_filter(record) == shown


@pytest.mark.parametrize(('iteration', 'shown'), [(0, False), (9, True)])
def test_of_the_tables_of_classes_the_screen_has_the_last(iteration, shown):
    hub = MessageHub.get_instance(f'tables{iteration}')  # the current one
    hub.update_info_dict(dict(iter=iteration, max_iters=10))
    record = logging.makeLogRecord(dict(msg='\n+-------+\n|   Class    |  IoU  |\n+-------+'))
    assert console_filter(record) == shown
