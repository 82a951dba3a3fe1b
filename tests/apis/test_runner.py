import time
from types import SimpleNamespace

import pytest
import torch
from mmengine.config import Config
from mmengine.runner import Runner
from torch.utils.data import DataLoader

from mmseg_cct.apis import runner as runner_module


@pytest.mark.skipif(torch.cuda.is_available(), reason='mmengine starts the group on a GPU')
def test_the_workers_of_a_distributed_run_end_by_themselves(tmp_path, monkeypatch):
    """They are told to: torch waits 5 s for each that is not."""
    start = torch.distributed.init_process_group
    store = dict(init_method=f'file://{tmp_path}/rendezvous', rank=0, world_size=1)
    monkeypatch.setattr(torch.distributed, 'init_process_group', lambda name: start(name, **store))

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
    runner_module.run(Config(dict(launcher='pytorch')), 'train')
    assert time.monotonic() - begun < 5
