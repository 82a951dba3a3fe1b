"""Kills, damaged files and moved ends: a resumed training is the one never interrupted."""

import multiprocessing
import os
import signal
import time

import pytest
import torch
from mmengine.runner import ValLoop
from ranks import without_cuda

from mmseg_cct.engine import checkpoints
from mmseg_cct.engine.checkpoints import read_checkpoint
from mmseg_cct.errors import UserError
from mmseg_cct.utils.files import locked_folder

pytestmark = pytest.mark.slow

MAX_ITERS = 6  # the config's
LOSSES = ('loss', 'decode.loss_ce', 'aux.loss', 'aux.consistency', 'lr')


def assert_same_curve(logged, expected):
    assert logged.keys() == expected.keys()
    for iteration, lines in logged.items():
        for line in lines:
            for key in LOSSES:
                assert line[key] == pytest.approx(expected[iteration][0][key], rel=1e-5), iteration


def assert_same_weights(one, other):
    for name, weight in other.items():
        torch.testing.assert_close(one[name], weight, rtol=1e-5, atol=1e-6)


@without_cuda
def test_killed_and_resumed_is_the_uninterrupted_run(cct, trained):
    work, put = cct.folder / 'work', checkpoints.AtomicLocalBackend.put

    def put_half(*args):
        os.fsync = lambda _: os.kill(os.getpid(), signal.SIGKILL)
        put(*args)

    def train(in_a_write):
        if in_a_write:
            checkpoints.AtomicLocalBackend.put = put_half  # this process has no other use for it
        resume = 'auto' if work.is_dir() else None
        cct.train(resume=resume, options={'train_cfg.max_iters': MAX_ITERS})

    context = multiprocessing.get_context('fork')  # quick: everything is imported
    for after in (1, None, 4):  # logged iterations before the kill; None: in the first write
        process = context.Process(target=train, args=(after is None,))
        process.start()
        if after:
            while process.is_alive() and len(cct.scalars(work)) < after:
                time.sleep(0.005)
            os.kill(process.pid, signal.SIGKILL)
        process.join()
        assert process.exitcode == -signal.SIGKILL
        assert after or list(work.glob('.*.part'))
        for path in work.glob('iter_*.pth'):
            read_checkpoint(str(path))
    cct.train(resume='auto')
    assert_same_curve(cct.scalars(work), trained.logged)
    last = work / f'iter_{MAX_ITERS}.pth'
    assert_same_weights(cct.load(last)['state_dict'], cct.load(trained.checkpoint)['state_dict'])


def test_a_validation_that_was_cut_short_is_run_again(cct, monkeypatch):
    options = {
        'train_cfg.max_iters': 2,
        'train_cfg.val_interval': 1,
        'default_hooks.checkpoint.interval': 1,
        'default_hooks.checkpoint.save_best': 'mIoU',
    }
    run, validated = ValLoop.run, {}  # mIoU by iteration

    def validate(self):
        validated[self.runner.iter] = run(self)['mIoU']

    def kill(self):
        raise KeyboardInterrupt

    monkeypatch.setattr(ValLoop, 'run', validate)
    cct.train('whole', options=options)
    expected = dict(validated)
    assert list(expected) == [1, 2]
    validated.clear()
    monkeypatch.setattr(ValLoop, 'run', kill)
    with pytest.raises(KeyboardInterrupt):
        cct.train(options=options)
    assert not list((cct.folder / 'work').glob('best_*'))
    monkeypatch.setattr(ValLoop, 'run', validate)
    cct.train(options=options, resume='auto')
    assert validated == pytest.approx(expected)
    whole, work = ([p.name for p in (cct.folder / n).glob('best_*')] for n in ('whole', 'work'))
    assert len(whole) == 1 and work == whole


def test_accumulated_gradients_are_accumulated_again_and_the_seed_is_kept(cct):
    """A seed that mmengine drew."""
    cct.config.pop('randomness')
    cct.write()
    options = {'optim_wrapper.accumulative_counts': 2, 'default_hooks.checkpoint.interval': 1}
    options['train_cfg.max_iters'] = 4
    cct.train('whole', options=options)
    cct.train('again', resume=str(cct.folder / 'whole/iter_3.pth'), options=options)
    assert list(cct.scalars(cct.folder / 'again')) == [3, 4]
    whole, again = (
        cct.load(cct.folder / name / 'iter_4.pth')['state_dict'] for name in ('whole', 'again')
    )
    statistics = ('running_mean', 'running_var', 'num_batches_tracked')
    assert_same_weights(again, {k: v for k, v in whole.items() if not k.endswith(statistics)})


def test_a_second_training_in_the_folder_is_refused(cct):
    with (
        locked_folder(cct.folder / 'work', 'another training'),
        pytest.raises(UserError, match='work: in use by another training'),
    ):
        cct.train()
