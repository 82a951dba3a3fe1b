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
from mmseg_cct.errors import Interrupted


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
    runner_module._run(Config(dict(launcher='pytorch')), 'train')
    assert time.monotonic() - begun < 5


@pytest.mark.skipif(torch.cuda.is_available(), reason='mmengine starts the group on a GPU')
@pytest.mark.parametrize(
    ('settings', 'options'),
    [({}, {}), (dict(dist_cfg=dict(timeout=7200)), dict(timeout=timedelta(hours=2)))],
)
def test_processes_wait_for_each_other_as_the_config_says(settings, options, monkeypatch):
    started = []

    def start(*args, **kwargs):
        started.append((*args, kwargs))
        raise RuntimeError('started')

    monkeypatch.setattr(torch.distributed, 'init_process_group', start)
    with pytest.raises(RuntimeError, match='started'):
        runner_module._run(Config(dict(launcher='pytorch', env_cfg=settings)), 'train')
    assert started == [('gloo', options)]


@pytest.mark.parametrize(
    ('saved', 'resume', 'goes_on'),
    [
        (None, False, 'no checkpoint is written yet, so the same command starts anew'),
        ('iter_3.pth', False, 'the same command with --resume goes on from iter_3.pth'),
        ('iter_3.pth', True, 'the same command goes on from iter_3.pth'),
    ],
)
def test_ctrl_c_says_how_a_training_goes_on(saved, resume, goes_on, monkeypatch):
    monkeypatch.setattr(runner_module, 'newest_checkpoint', lambda _: saved and f'work/{saved}')
    hooks = []

    def train():
        hooks[0].after_train_iter(None)
        raise KeyboardInterrupt

    fake = SimpleNamespace(
        train=train, register_hook=lambda hook, _: hooks.append(hook), work_dir='work', iter=4,
        max_iters=9,
    )  # fmt: skip
    monkeypatch.setattr(Runner, 'from_cfg', lambda _: fake)
    with pytest.raises(Interrupted) as caught:
        runner_module._run(Config(dict(launcher='none', resume=resume)), 'train')
    assert str(caught.value) == f'4 of 9 iterations done; {goes_on}'


@pytest.mark.parametrize(
    ('line', 'shown'),
    [
        ('\n-----------\nSystem environment:', False),
        ('Config:\nmodel = 1', False),
        ('Hooks will be executed in the following order:\n', False),
        ('"FileClient" will be deprecated in future', False),
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
