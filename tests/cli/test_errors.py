import errno
from multiprocessing.queues import Queue

import pytest
import torch
from torch.utils.data import DataLoader
from workers import Failing, closing_workers

from mmseg_cct.cli import errors
from mmseg_cct.cli.errors import hand_over_error, user_errors_as_one_line
from mmseg_cct.errors import TRACEBACK_VARIABLE, UserError


@pytest.fixture(autouse=True)
def _rank_0(monkeypatch):
    monkeypatch.delenv('RANK', raising=False)


@pytest.mark.parametrize('rank', ['0', '1'])
def test_a_tool_ends_with_one_line_and_code_2_on_rank_0_first(rank, capsys, monkeypatch):
    waited = []
    monkeypatch.setenv('RANK', rank)
    monkeypatch.setattr(
        errors.time, 'sleep', lambda seconds: waited.append((seconds, capsys.readouterr().err))
    )
    with pytest.raises(SystemExit) as caught, user_errors_as_one_line():
        raise UserError('a.png: bad; expected good')
    assert caught.value.code == 2
    assert waited == ([(5.0, '')] if rank == '1' else [])
    assert capsys.readouterr() == ('', 'error: a.png: bad; expected good\n')


def test_a_bug_keeps_its_traceback_and_a_variable_asks_for_others(monkeypatch):
    with pytest.raises(KeyError), user_errors_as_one_line():
        raise KeyError('bug')
    monkeypatch.setenv(TRACEBACK_VARIABLE, '1')
    with pytest.raises(UserError), user_errors_as_one_line():
        raise UserError('a.png: bad; expected good')


def test_a_process_that_ends_with_an_error_leaves_its_group():
    store = torch.distributed.HashStore()
    torch.distributed.init_process_group('gloo', store=store, rank=0, world_size=1)
    with pytest.raises(SystemExit), user_errors_as_one_line():
        raise UserError('wrong')
    assert not torch.distributed.is_initialized()


def test_errors_of_the_system_are_no_bugs(capsys):
    for error in (OSError(errno.ENOLCK, 'No locks available'), OSError(2, 'None', 'x')):
        with pytest.raises(SystemExit, match='2'), user_errors_as_one_line():
            raise error
    assert capsys.readouterr().err == 'error: OSError: No locks available\nerror: x: None\n'


def test_of_an_error_in_a_loading_worker_its_lines_are_said(capsys):
    message = 'a.png: label id 7 outside the classes; expected 0 to 2\nb.png: none'
    loading = closing_workers(DataLoader(Failing(message), num_workers=1))
    with loading as batches, pytest.raises(SystemExit), user_errors_as_one_line():
        next(batches)
    lines = 'error: a.png: label id 7 outside the classes; expected 0 to 2\nerror: b.png: none\n'
    assert capsys.readouterr().err == lines


@pytest.mark.parametrize(
    ('words', 'remedy'),
    [
        ('unable to allocate shared memory(shm) for file </torch_1_2>: No space left', 'shm-size'),
        ('DataLoader worker (pid 1) is killed by signal: Bus error. It is possible', 'shm-size'),
        ('DataLoader worker (pid(s) 1) exited unexpectedly', 'fewer workers'),
        ('DataLoader timed out after 600 seconds', 'timeout'),
    ],
)
@pytest.mark.parametrize('kind', [RuntimeError, UserError])  # as it is of a first batch
def test_what_happens_to_loading_workers_has_a_remedy(words, remedy, kind, capsys):
    with pytest.raises(SystemExit), user_errors_as_one_line():
        raise kind(words)
    assert remedy in capsys.readouterr().err


def test_a_batch_that_a_worker_cannot_hand_over_is_an_error(monkeypatch):
    """Such as one for which shared memory is too small; a function cannot be handed over either."""
    monkeypatch.setattr(Queue, '_on_queue_feeder_error', hand_over_error)
    loader = DataLoader([lambda: None], num_workers=1, collate_fn=list, timeout=60)
    with closing_workers(loader) as batches, pytest.raises(Exception, match='in a loading worker'):
        next(batches)


def test_ctrl_c_ends_quietly(capsys):
    with pytest.raises(SystemExit) as caught, user_errors_as_one_line():
        raise KeyboardInterrupt
    assert caught.value.code == 130
    assert capsys.readouterr() == ('', '\nstopped\n')
